//! Arithmetic: exact on decimals, of numbers alone.

use kanat_json::Decimal;

use crate::effort::CALL;
use crate::node::Arithmetic;
use crate::value::Value;
use crate::{Effort, EvaluationError};

/// Greatest number of digits of a result as it is written out.
const MAX_DIGITS: u64 = 1_000;
/// Greatest number of digits of an operand as it is written.
const MAX_OPERAND_DIGITS: usize = 10_000;
/// Steps charged for each digit of operands and of the places between them.
const DIGIT: u64 = 10;

/// Operand of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub fn of<'v, 's>(self, left: &'v Value<'s>, right: &'v Value<'s>) -> &'v Value<'s> {
        match self {
            Self::Left => left,
            Self::Right => right,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Left => "the left side",
            Self::Right => "the right side",
        }
    }
}

/// Calculates. An error tells which operand is at fault.
pub(crate) fn arithmetic<'s>(
    operator: Arithmetic,
    left: &Value,
    right: &Value,
    effort: &Effort,
) -> Result<Value<'s>, (Side, Box<EvaluationError>)> {
    let operand = |side: Side| {
        let place = format!("{} of `{}`", side.name(), operator.sign());
        number(side.of(left, right), &place, operator)
            .map_err(|message| (side, Box::new(EvaluationError::mapping(message))))
    };
    let one = operand(Side::Left)?;
    let other = operand(Side::Right)?;
    let of_right = |message: &str| (Side::Right, Box::new(EvaluationError::mapping(message)));
    charge(operator, &one, &other, effort).map_err(|error| (Side::Right, Box::new(error)))?;
    let by_zero = || of_right("a division by zero");
    let result = match operator {
        Arithmetic::Add => Decimal::sum(&[one, other]),
        Arithmetic::Subtract => Decimal::sum(&[one, other.negated()]),
        Arithmetic::Multiply => one.product(&other),
        Arithmetic::Divide => one.quotient(&other).ok_or_else(by_zero)?,
        Arithmetic::Remainder => one.remainder(&other).ok_or_else(by_zero)?,
    };
    bounded(&result).map_err(of_right)
}

/// Returns the number with the other sign.
pub(crate) fn negative<'s>(value: &Value, effort: &Effort) -> Result<Value<'s>, EvaluationError> {
    effort.read(value.size());
    effort.check()?;
    let number = number(value, "the value after `-`", Arithmetic::Subtract)
        .map_err(EvaluationError::mapping)?;
    bounded(&number.negated()).map_err(EvaluationError::mapping)
}

/// Returns a result of arithmetic; an error for one that is too long.
pub(super) fn bounded<'s>(result: &Decimal) -> Result<Value<'s>, &'static str> {
    if result.written_digits() > MAX_DIGITS {
        return Err("the result has more than 1,000 digits");
    }
    Ok(Value::number(result.plain()))
}

/// Charges what an operation takes at most, before it is done.
fn charge(
    operator: Arithmetic,
    left: &Decimal,
    right: &Decimal,
    effort: &Effort,
) -> Result<(), EvaluationError> {
    let apart = match operator {
        Arithmetic::Multiply => 0,
        Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Divide | Arithmetic::Remainder => {
            Decimal::columns(&[left.clone(), right.clone()]).count()
        }
    };
    let one = left.digit_count() as u64;
    let other = right.digit_count() as u64;
    let long = match operator {
        Arithmetic::Add | Arithmetic::Subtract => 0,
        Arithmetic::Multiply | Arithmetic::Divide => one * other / 64,
        Arithmetic::Remainder => apart as u64 * other / 64,
    };
    effort.spend(CALL + DIGIT * (one + other + apart as u64) + long);
    effort.check()
}

fn number(value: &Value, place: &str, operator: Arithmetic) -> Result<Decimal, String> {
    let digits = match value {
        Value::Number(digits) => digits,
        Value::Undefined | Value::Null => {
            return Err(format!(
                "{place} is {}, expected a number; `default` gives one where there is none",
                value.type_name()
            ));
        }
        Value::String(_) => {
            let joins = match operator {
                Arithmetic::Add => "; texts are joined with `concat`",
                Arithmetic::Subtract
                | Arithmetic::Multiply
                | Arithmetic::Divide
                | Arithmetic::Remainder => "",
            };
            return Err(format!(
                "{place} is a string, expected a number; `number` makes one of a text{joins}"
            ));
        }
        Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            return Err(format!(
                "{place} is {}, expected a number",
                value.type_name()
            ));
        }
    };
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let count = mantissa.bytes().filter(u8::is_ascii_digit).count();
    if count > MAX_OPERAND_DIGITS {
        return Err(format!("{place} has more than 10,000 digits"));
    }
    Decimal::parse_bounded(digits).map_err(|wrong| format!("{place}: {wrong}"))
}
