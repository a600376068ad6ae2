//! The transforms of a pipe: their arguments, and their application to a value.

mod csv;
mod date;
mod element;
mod encode;
mod grow;
mod list;
mod lookup;
mod number;
mod pattern;
mod sequence;
mod shape;
mod sign;
mod table;
mod text;
mod xml;

use crate::environment::Environment;
use crate::language::Function;
use crate::node::Node;
use crate::value::Value;
use crate::{EvaluationError, json};

pub(crate) use element::Elementwise;
pub(crate) use encode::RESERVED;
pub(crate) use grow::{BoundedList, BoundedText, MAX_BYTES, too_large};
pub(crate) use number::{Operand, arithmetic, negative};
pub(crate) use shape::Shape;

/// Returns the transforms as the language's table has them.
pub(crate) fn functions() -> impl Iterator<Item = Function> {
    table::shapes().map(Shape::function)
}

/// A transform without those of its arguments that are expressions.
#[derive(Debug, Clone)]
pub(crate) enum Transform {
    Decimal(u32),
    Uppercase,
    Lowercase,
    Trim,
    Now,
    Date(date::Format),
    Required,
    /// Name of the table.
    Lookup(String),
    Default,
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
    Concat,
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
    /// Evaluates its argument for each element of a list.
    Each(Elementwise),
    Min,
    Max,
    Flatten,
    Reverse,
    Slice,
    Contains,
    Sha256,
    Base64,
    Base64Decode,
    UrlEncode,
    Mask(usize),
    Title,
    Slug,
    PadLeft(usize, char),
    Base64Url,
    Hmac(sign::Algorithm, sign::Encoding),
    Matches(pattern::Pattern),
    Extract(pattern::Pattern),
    DateAdd(date::Shift),
    DateDiff(date::Unit),
    ParseCsv(csv::Dialect),
    /// Separator of the fields.
    ToCsv(u8),
    ParseXml,
    /// Name of the root element.
    ToXml(String),
    Adapter(String),
}

/// Result of a transform.
type TransformResult<'s> = Result<Value<'s>, EvaluationError>;

impl Transform {
    pub fn apply<'s>(
        &'s self,
        value: &Value<'s>,
        arguments: &'s [Node],
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        match self {
            Self::Now => return Ok(Value::plain(environment.now().to_string())),
            Self::Default if value.is_missing() => {
                return environment.argument(arguments.first());
            }
            Self::Required if value.is_missing() => {
                return Err(EvaluationError::mapping(format!(
                    "a value is required, found {}",
                    value.type_name()
                )));
            }
            Self::Lookup(table) => {
                return lookup::lookup(value, table, arguments.first(), environment);
            }
            _ if value.is_missing() => return Ok(value.clone()),
            Self::Default | Self::Required => return Ok(value.clone()),
            _ => {}
        }
        let result = self.apply_to_present(value, arguments, environment)?;
        if result.size() > MAX_BYTES {
            return Err(too_large());
        }
        Ok(result)
    }

    fn apply_to_present<'s>(
        &'s self,
        value: &Value<'s>,
        arguments: &'s [Node],
        environment: &Environment<'s>,
    ) -> TransformResult<'s> {
        let effort = environment.effort;
        match self {
            Self::Now | Self::Default | Self::Required | Self::Lookup(_) => Ok(value.clone()),
            Self::Decimal(places) => number::decimal(value, *places),
            Self::Number => number::number(value),
            Self::Integer => number::integer(value),
            Self::Boolean => number::boolean(value),
            Self::Sum => number::sum(value, effort),
            Self::Round(places) => number::round(value, *places),
            Self::Abs => number::abs(value),
            Self::Uppercase => Ok(Value::plain(text::of(value)?.to_uppercase())),
            Self::Lowercase => Ok(Value::plain(text::of(value)?.to_lowercase())),
            Self::Trim => Ok(Value::plain(text::of(value)?.trim().to_owned())),
            Self::String => Ok(Value::plain(value.rendered().into_owned())),
            Self::Replace(from, to) => text::replace(value, from, to),
            Self::Substring { start, length } => text::substring(value, *start, *length),
            Self::Concat => text::concat(value, arguments, environment),
            Self::Mask(keep) => text::mask(value, *keep),
            Self::Date(format) => {
                environment.spend(format.effort())?;
                date::date(value, format)
            }
            Self::Split(separator) => list::split(value, separator),
            Self::Join(separator) => list::join(value, separator, effort),
            Self::Length => list::length(value, effort),
            Self::First => list::first(value, effort),
            Self::Last => list::last(value, effort),
            Self::Unique => list::unique(value, effort),
            Self::Sort => list::sort(value, effort),
            Self::Keys => list::keys(value, effort),
            Self::Values => list::values(value, effort),
            Self::Each(elementwise) => elementwise.apply(value, arguments, environment),
            Self::Min => sequence::min(value, effort),
            Self::Max => sequence::max(value, effort),
            Self::Flatten => sequence::flatten(value, effort),
            Self::Reverse => sequence::reverse(value, effort),
            Self::Slice => sequence::slice(value, arguments, environment),
            Self::Contains => sequence::contains(value, arguments, environment),
            Self::Json => Ok(Value::plain(value.to_json().into_owned())),
            Self::ParseJson => parse_json(value),
            Self::Sha256 => encode::sha256(value),
            Self::Base64 => encode::base64(value),
            Self::Base64Decode => encode::base64_decode(value),
            Self::UrlEncode => encode::url_encode(value),
            Self::Title => text::title(value),
            Self::Slug => text::slug(value),
            Self::PadLeft(count, with) => text::pad_left(value, *count, *with),
            Self::Base64Url => encode::base64url(value),
            Self::Hmac(algorithm, encoding) => {
                sign::hmac(value, *algorithm, *encoding, arguments, environment)
            }
            Self::Matches(pattern) => pattern.matches(value, environment),
            Self::Extract(pattern) => pattern.extract(value, environment),
            Self::DateAdd(shift) => {
                environment.spend(date::STEPS)?;
                date::add(value, *shift)
            }
            Self::DateDiff(unit) => date::difference(value, *unit, arguments, environment),
            Self::ParseCsv(dialect) => csv::parse(value, *dialect, effort),
            Self::ToCsv(separator) => csv::write(value, *separator, effort),
            Self::ParseXml => xml::parse(value, effort),
            Self::ToXml(root) => xml::write(value, root, effort),
            Self::Adapter(name) => lookup::adapter(value, name, environment),
        }
    }

    /// Returns whether it refuses null and undefined.
    pub fn is_required(&self) -> bool {
        matches!(self, Self::Required)
    }

    /// Returns whether its result has its input and its arguments whole: as they are, encoded, or
    /// hashed.
    pub fn keeps_values_whole(&self) -> bool {
        matches!(
            self,
            Self::Required
                | Self::Default
                | Self::String
                | Self::Concat
                | Self::Sha256
                | Self::Base64
                | Self::Base64Url
                | Self::UrlEncode
        )
    }
}

/// Creates the error of a value of a kind that the transform does not take.
fn refused(value: &Value, expected: &str) -> EvaluationError {
    let found = match value {
        // A webhook makes it of a body that is no text.
        Value::Object(object) if object.starts_with(r#"{"base64":"#) => {
            "an object of bytes (base64): the body is not UTF-8, or has a content type that is no \
             text"
        }
        other => other.type_name(),
    };
    EvaluationError::mapping(format!("expected {expected}, found {found}"))
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
