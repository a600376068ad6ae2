//! Arithmetic: exact on decimals, of numbers alone.

use std::borrow::Cow;
use std::fmt;

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

/// Value that is calculated with.
pub(crate) enum Operand<'s> {
    Value(Value<'s>),
    /// Result of arithmetic.
    Number(Decimal),
}

impl<'s> Operand<'s> {
    pub fn into_value(self) -> Value<'s> {
        match self {
            Self::Value(value) => value,
            Self::Number(number) => Value::number(number.plain()),
        }
    }

    pub fn to_value(&self) -> Value<'s> {
        match self {
            Self::Value(value) => value.clone(),
            Self::Number(number) => Value::number(number.plain()),
        }
    }

    /// Returns the bytes that it owns.
    pub fn owned_size(&self) -> usize {
        match self {
            Self::Value(value) => value.owned_size(),
            Self::Number(number) => number.digit_count(),
        }
    }

    fn number(&self, place: Place) -> Result<Cow<'_, Decimal>, String> {
        match self {
            Self::Value(value) => number(value, place).map(Cow::Owned),
            Self::Number(number) => Ok(Cow::Borrowed(number)),
        }
    }
}

/// Side of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub fn of<'o, 's>(self, left: &'o Operand<'s>, right: &'o Operand<'s>) -> &'o Operand<'s> {
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

/// Place of an operand, as errors name it.
#[derive(Clone, Copy)]
enum Place {
    Side(Side, Arithmetic),
    /// Behind the minus of a negative value.
    AfterMinus,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side(side, operator) => write!(f, "{} of `{}`", side.name(), operator.sign()),
            Self::AfterMinus => f.write_str("the value after `-`"),
        }
    }
}

/// Calculates. An error tells which operand is at fault.
pub(crate) fn arithmetic(
    operator: Arithmetic,
    left: &Operand<'_>,
    right: &Operand<'_>,
    effort: &Effort,
) -> Result<Decimal, (Side, Box<EvaluationError>)> {
    let operand = |side: Side| {
        side.of(left, right)
            .number(Place::Side(side, operator))
            .map_err(|message| (side, Box::new(EvaluationError::mapping(message))))
    };
    let one = operand(Side::Left)?;
    let other = operand(Side::Right)?;
    let of_right = |message: &str| (Side::Right, Box::new(EvaluationError::mapping(message)));
    charge(operator, &one, &other, effort).map_err(|error| (Side::Right, Box::new(error)))?;
    let by_zero = || of_right("a division by zero");
    let result = match operator {
        Arithmetic::Add => Decimal::sum(&[one.into_owned(), other.into_owned()]),
        Arithmetic::Subtract => Decimal::sum(&[one.into_owned(), other.into_owned().negated()]),
        Arithmetic::Multiply => one.product(&other),
        Arithmetic::Divide => one.quotient(&other).ok_or_else(by_zero)?,
        Arithmetic::Remainder => one.remainder(&other).ok_or_else(by_zero)?,
    };
    bounded(result).map_err(of_right)
}

/// Returns the number with the other sign.
pub(crate) fn negative<'s>(value: &Value, effort: &Effort) -> Result<Value<'s>, EvaluationError> {
    effort.read(value.size());
    effort.check()?;
    let number = number(value, Place::AfterMinus).map_err(EvaluationError::mapping)?;
    let negated = bounded(number.negated()).map_err(EvaluationError::mapping)?;
    Ok(Value::number(negated.plain()))
}

/// Returns a result of arithmetic; an error for one that is too long.
pub(super) fn bounded(result: Decimal) -> Result<Decimal, &'static str> {
    if result.written_digits() > MAX_DIGITS {
        return Err("the result has more than 1,000 digits");
    }
    Ok(result)
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
            Decimal::columns([left, right].into_iter()).count()
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

fn number(value: &Value, place: Place) -> Result<Decimal, String> {
    let digits = match value {
        Value::Number(digits) => digits,
        Value::Undefined | Value::Null => {
            return Err(format!(
                "{place} is {}, expected a number; `default` gives one where there is none",
                value.type_name()
            ));
        }
        Value::String(_) => {
            let joins = match place {
                Place::Side(_, Arithmetic::Add) => "; texts are joined with `concat`",
                Place::Side(..) | Place::AfterMinus => "",
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
