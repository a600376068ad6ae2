//! Plain values, from JSON or from the text of a path or query. Errors name the expected value and
//! the one that was found.

use std::fmt::Display;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, engine::DecodePaddingMode};
use prost_reflect::{EnumDescriptor, Kind, Value};

use crate::json::{self, Value as Json};

/// Whole numbers up to this size are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Converts a JSON value to `kind`, which is no message. 64-bit integers may come as strings,
/// because many readers of JSON lose their digits otherwise.
pub(crate) fn from_json(kind: &Kind, json: Json<'_>) -> Result<Value, String> {
    let found = || json.kind().describe();
    let raw = json.raw();
    match (kind, json.kind()) {
        (Kind::String, json::Kind::String) => {
            let text = json
                .text()
                .ok_or("the text has half a character in an escape")?;
            Ok(Value::String(text.into_owned()))
        }
        (Kind::Bool, json::Kind::Boolean) => Ok(Value::Bool(raw == "true")),
        (Kind::Bytes | Kind::Enum(_), json::Kind::String) => from_text(
            kind,
            &json
                .text()
                .ok_or("the text has half a character in an escape")?,
        ),
        (Kind::Float | Kind::Double, json::Kind::Number) => from_text(kind, raw),
        (
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64,
            json::Kind::String,
        ) => from_text(kind, &json.text().unwrap_or_default()),
        (kind, json::Kind::Number) if is_integer(kind) => from_text(kind, raw),
        (kind, _) => Err(format!("expected {}, found {}", describe(kind), found())),
    }
}

/// Converts the text of a path segment, a query parameter or a map's key to `kind`.
pub(crate) fn from_text(kind: &Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::String => Ok(Value::String(text.to_owned())),
        Kind::Bool => match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(format!("expected true or false, found {text:?}")),
        },
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            integer(text, i32::MIN, i32::MAX).map(Value::I32)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            integer(text, i64::MIN, i64::MAX).map(Value::I64)
        }
        Kind::Uint32 | Kind::Fixed32 => integer(text, u32::MIN, u32::MAX).map(Value::U32),
        Kind::Uint64 | Kind::Fixed64 => integer(text, u64::MIN, u64::MAX).map(Value::U64),
        Kind::Float => float(text).map(|f: f32| Value::F32(f)),
        Kind::Double => float(text).map(|f: f64| Value::F64(f)),
        Kind::Bytes => {
            // Both alphabets, padded or not.
            let text = text.replace('-', "+").replace('_', "/");
            let lenient = GeneralPurposeConfig::new()
                .with_decode_padding_mode(DecodePaddingMode::Indifferent);
            let bytes = GeneralPurpose::new(&alphabet::STANDARD, lenient).decode(text);
            bytes
                .map(|b| Value::Bytes(b.into()))
                .map_err(|_| "expected base64".to_owned())
        }
        Kind::Enum(names) => enumerated(names, text),
        Kind::Message(_) => Err("expected an object".to_owned()),
    }
}

fn enumerated(names: &EnumDescriptor, text: &str) -> Result<Value, String> {
    let value = names.get_value_by_name(text);
    value.map(|v| Value::EnumNumber(v.number())).ok_or_else(|| {
        let known: Vec<_> = names.values().map(|v| v.name().to_owned()).collect();
        format!("expected one of {}, found {text:?}", known.join(", "))
    })
}

/// Parses a whole number. `1.0` and `1e3` are whole numbers too.
fn integer<T: FromStr + Display>(text: &str, least: T, most: T) -> Result<T, String> {
    let whole = || {
        let float = text
            .parse::<f64>()
            .ok()
            .filter(|f| f.fract() == 0.0 && f.abs() <= EXACT)?;
        format!("{float:.0}").parse().ok()
    };
    let plain = text
        .strip_prefix('-')
        .unwrap_or(text)
        .bytes()
        .all(|b| b.is_ascii_digit());
    let value = if plain { text.parse().ok() } else { whole() };
    value.ok_or_else(|| {
        format!(
            "expected a whole number from {least} to {most}, found {}",
            cut(text)
        )
    })
}

fn float<T: FromStr + Into<f64> + Copy>(text: &str) -> Result<T, String> {
    let value = text
        .parse::<T>()
        .ok()
        .filter(|f| Into::<f64>::into(*f).is_finite());
    value.ok_or_else(|| format!("expected a number, found {}", cut(text)))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{:?}...", &text[..at]),
        None => format!("{text:?}"),
    }
}

fn is_integer(kind: &Kind) -> bool {
    describe(kind) == "a whole number"
}

fn describe(kind: &Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::Bool => "a boolean",
        Kind::Bytes => "a string of base64",
        Kind::Enum(_) => "the name of a choice",
        Kind::Float | Kind::Double => "a number",
        Kind::Message(_) => "an object",
        Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Sint32 | Kind::Sint64 => {
            "a whole number"
        }
        Kind::Fixed32 | Kind::Fixed64 | Kind::Sfixed32 | Kind::Sfixed64 => "a whole number",
    }
}
