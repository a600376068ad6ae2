//! Transforms of numbers: exact decimal arithmetic on numbers and numeric strings.

mod operators;
mod total;

use super::{TransformResult, refused};
use crate::value::Value;
use crate::{Effort, EvaluationError, json};
use kanat_json::Decimal;

pub(crate) use operators::{Operand, arithmetic, negative};
pub(super) use total::Total;

pub(super) fn decimal<'s>(value: &Value<'s>, places: u32) -> TransformResult<'s> {
    Ok(Value::plain(parse(value)?.fixed(places)))
}

/// Converts a numeric string to a number, with its digits where JSON can write them. A number stays
/// as it is.
pub(super) fn number<'s>(value: &Value<'s>) -> TransformResult<'s> {
    let number = parse(value)?;
    match value {
        Value::Number(_) => Ok(value.clone()),
        _ => {
            let text = value.text().unwrap_or_default();
            let text = text.trim();
            let written = json::is_number(text);
            Ok(Value::number(if written {
                text.to_owned()
            } else {
                number.plain()
            }))
        }
    }
}

pub(super) fn integer<'s>(value: &Value<'s>) -> TransformResult<'s> {
    let number = parse(value)?;
    if !number.is_whole() {
        return Err(EvaluationError::mapping(
            "expected a whole number; `round` makes one",
        ));
    }
    Ok(Value::number(number.plain()))
}

/// Converts numbers, which are true unless they are 0, and strings with the usual words.
pub(super) fn boolean<'s>(value: &Value<'s>) -> TransformResult<'s> {
    const EXPECTED: &str =
        "a boolean, a number, or a string such as true, false, yes, no, on, off, 1 or 0";
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Number(_) => Ok(Value::Bool(value.truthy())),
        Value::String(text) => match text.decode().trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" | "y" | "t" => Ok(Value::Bool(true)),
            "false" | "no" | "off" | "0" | "n" | "f" => Ok(Value::Bool(false)),
            _ => Err(EvaluationError::mapping(format!("expected {EXPECTED}"))),
        },
        Value::Undefined | Value::Null | Value::List(_) | Value::Object(_) => {
            Err(refused(value, EXPECTED))
        }
    }
}

pub(super) fn round<'s>(value: &Value<'s>, places: u32) -> TransformResult<'s> {
    Ok(Value::number(parse(value)?.round(places).plain()))
}

pub(super) fn abs<'s>(value: &Value<'s>) -> TransformResult<'s> {
    Ok(Value::number(parse(value)?.abs().plain()))
}

/// Sums the numbers of a list. Nulls count nothing.
pub(super) fn sum<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let Value::List(list) = value else {
        return Err(refused(value, "a list of numbers"));
    };
    let mut total = Total::new(effort);
    for item in effort.items(list) {
        total.add(&Value::from_json(item))?;
    }
    total.into_value()
}

fn parse(value: &Value) -> Result<Decimal, EvaluationError> {
    const EXPECTED: &str = "a number or a numeric string";
    let text = match value {
        Value::Number(digits) => digits.as_ref().into(),
        Value::String(text) => text.decode(),
        Value::Undefined | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            return Err(refused(value, EXPECTED));
        }
    };
    Decimal::parse_bounded(&text)
        .map_err(|wrong| EvaluationError::mapping(format!("expected {EXPECTED}: {wrong}")))
}
