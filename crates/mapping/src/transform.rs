//! The transforms of a pipe: their arguments, and their application to a value.

mod build;
mod date;
mod encode;
mod grow;
mod list;
mod lookup;
mod number;
mod text;

use crate::evaluate::Environment;
use crate::node::Operand;
use crate::value::Value;
use crate::{EvaluationError, json};

pub(crate) use build::build;
pub(crate) use encode::RESERVED;
pub(crate) use grow::{BoundedText, MAX_BYTES, too_large};

#[derive(Debug, Clone)]
pub(crate) enum Transform {
    Decimal(u32),
    Uppercase,
    Lowercase,
    Trim,
    Now,
    Date(date::Format),
    Required,
    Lookup {
        table: String,
        default: Option<Operand>,
    },
    Default(Operand),
    String,
    Number,
    Integer,
    Boolean,
    Json,
    ParseJson,
    Split(String),
    Join(String),
    Replace(String, String),
    Substring {
        start: i64,
        length: Option<usize>,
    },
    Concat(Vec<Operand>),
    Length,
    First,
    Last,
    Sum,
    Round(u32),
    Abs,
    Unique,
    Sort,
    Keys,
    Values,
    Sha256,
    Base64,
    Base64Decode,
    UrlEncode,
    Mask(usize),
    Adapter(String),
}

/// Result of a transform.
type TransformResult<'s> = Result<Value<'s>, EvaluationError>;

impl Transform {
    pub fn apply<'s>(
        &'s self,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        match self {
            Self::Now => return Ok(Value::plain(environment.now.to_string())),
            Self::Default(operand) if value.is_missing() => return environment.operand(operand),
            Self::Required if value.is_missing() => {
                return Err(EvaluationError::mapping(format!(
                    "a value is required, found {}",
                    value.type_name()
                )));
            }
            Self::Lookup { table, default } => {
                return lookup::lookup(value, table, default.as_ref(), environment);
            }
            _ if value.is_missing() => return Ok(value.clone()),
            Self::Default(_) | Self::Required => return Ok(value.clone()),
            _ => {}
        }
        let result = self.apply_to_present(value, environment)?;
        if result.size() > MAX_BYTES {
            return Err(too_large());
        }
        Ok(result)
    }

    fn apply_to_present<'s>(
        &'s self,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        match self {
            Self::Now | Self::Default(_) | Self::Required | Self::Lookup { .. } => {
                Ok(value.clone())
            }
            Self::Decimal(places) => number::decimal(value, *places),
            Self::Number => number::number(value),
            Self::Integer => number::integer(value),
            Self::Boolean => number::boolean(value),
            Self::Sum => number::sum(value, environment.effort),
            Self::Round(places) => number::round(value, *places),
            Self::Abs => number::abs(value),
            Self::Uppercase => Ok(Value::plain(text::of(value)?.to_uppercase())),
            Self::Lowercase => Ok(Value::plain(text::of(value)?.to_lowercase())),
            Self::Trim => Ok(Value::plain(text::of(value)?.trim().to_owned())),
            Self::String => Ok(Value::plain(value.rendered().into_owned())),
            Self::Replace(from, to) => text::replace(value, from, to),
            Self::Substring { start, length } => text::substring(value, *start, *length),
            Self::Concat(operands) => text::concat(value, operands, environment),
            Self::Mask(keep) => text::mask(value, *keep),
            Self::Date(format) => {
                environment.spend(format.effort())?;
                date::date(value, format)
            }
            Self::Split(separator) => list::split(value, separator),
            Self::Join(separator) => list::join(value, separator, environment.effort),
            Self::Length => list::length(value, environment.effort),
            Self::First => list::first(value, environment.effort),
            Self::Last => list::last(value, environment.effort),
            Self::Unique => list::unique(value, environment.effort),
            Self::Sort => list::sort(value, environment.effort),
            Self::Keys => list::keys(value, environment.effort),
            Self::Values => list::values(value, environment.effort),
            Self::Json => Ok(Value::plain(value.to_json().into_owned())),
            Self::ParseJson => parse_json(value),
            Self::Sha256 => encode::sha256(value),
            Self::Base64 => encode::base64(value),
            Self::Base64Decode => encode::base64_decode(value),
            Self::UrlEncode => encode::url_encode(value),
            Self::Adapter(name) => lookup::adapter(value, name, environment),
        }
    }

    /// Returns whether its result has its input and its arguments whole: as they are, encoded, or
    /// hashed.
    pub fn keeps_values_whole(&self) -> bool {
        match self {
            Self::Required
            | Self::Default(_)
            | Self::String
            | Self::Concat(_)
            | Self::Sha256
            | Self::Base64
            | Self::UrlEncode => true,
            Self::Decimal(_)
            | Self::Uppercase
            | Self::Lowercase
            | Self::Trim
            | Self::Now
            | Self::Date(_)
            | Self::Lookup { .. }
            | Self::Number
            | Self::Integer
            | Self::Boolean
            | Self::Json
            | Self::ParseJson
            | Self::Split(_)
            | Self::Join(_)
            | Self::Replace(..)
            | Self::Substring { .. }
            | Self::Length
            | Self::First
            | Self::Last
            | Self::Sum
            | Self::Round(_)
            | Self::Abs
            | Self::Unique
            | Self::Sort
            | Self::Keys
            | Self::Values
            | Self::Base64Decode
            | Self::Mask(_)
            | Self::Adapter(_) => false,
        }
    }

    /// Returns the values among its arguments.
    pub fn operands(&mut self) -> &mut [Operand] {
        match self {
            Self::Default(operand)
            | Self::Lookup {
                default: Some(operand),
                ..
            } => std::slice::from_mut(operand),
            Self::Concat(operands) => operands,
            _ => &mut [],
        }
    }
}

/// Creates the error of a value of a kind that the transform does not take.
fn refused(value: &Value, expected: &str) -> EvaluationError {
    EvaluationError::mapping(format!("expected {expected}, found {}", value.type_name()))
}

fn parse_json<'s>(value: &Value<'s>) -> TransformResult<'s> {
    let Value::String(text) = value else {
        return Err(refused(value, "a string"));
    };
    let text = text.decode();
    json::check(text.as_bytes(), json::MAX_DEPTH)
        .map_err(|error| EvaluationError::mapping(format!("the string is not JSON: {error}")))?;
    Ok(Value::from_owned_json(text.trim().to_owned()))
}
