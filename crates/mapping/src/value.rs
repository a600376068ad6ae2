//! Values of expressions: mostly slices of the documents that they came from.

mod compare;

use std::borrow::Cow;

use crate::json;

pub(crate) use compare::{canonical, equal, order};

/// Result of an expression. Lists and objects are JSON text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'s> {
    /// No value: a field with it is left out.
    Undefined,
    Null,
    Bool(bool),
    /// The digits, as JSON writes a number.
    Number(Cow<'s, str>),
    String(Text<'s>),
    List(Cow<'s, str>),
    Object(Cow<'s, str>),
}

/// String as a slice of a document, or as plain text.
#[derive(Debug, Clone, PartialEq)]
pub enum Text<'s> {
    /// As it stands in its document, with quotes and escapes.
    Raw(Cow<'s, str>),
    Plain(Cow<'s, str>),
}

impl<'s> Value<'s> {
    /// Returns the value of JSON that has been checked.
    pub fn from_json(json: &'s str) -> Self {
        Self::from_cow(Cow::Borrowed(json.trim_matches([' ', '\n', '\r', '\t'])))
    }

    /// Returns the value of checked JSON that it then owns.
    pub(crate) fn from_owned_json(json: String) -> Self {
        Self::from_cow(Cow::Owned(json))
    }

    /// Returns a part of `whole` as a value, borrowed when `whole` is.
    pub(crate) fn from_part(
        whole: &Cow<'s, str>,
        part: impl for<'w> FnOnce(&'w str) -> Option<&'w str>,
    ) -> Self {
        match whole {
            Cow::Borrowed(whole) => part(whole).map_or(Self::Undefined, Self::from_json),
            Cow::Owned(whole) => part(whole).map_or(Self::Undefined, |part| {
                Self::from_owned_json(part.to_owned())
            }),
        }
    }

    fn from_cow(json: Cow<'s, str>) -> Self {
        match json.as_bytes().first() {
            Some(b'"') => Self::String(Text::Raw(json)),
            Some(b'{') => Self::Object(json),
            Some(b'[') => Self::List(json),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'-' | b'0'..=b'9') => Self::Number(json),
            Some(b'n') => Self::Null,
            Some(_) | None => Self::Undefined,
        }
    }

    pub fn plain(text: impl Into<Cow<'s, str>>) -> Self {
        Self::String(Text::Plain(text.into()))
    }

    pub fn number(digits: impl Into<Cow<'s, str>>) -> Self {
        Self::Number(digits.into())
    }

    /// Returns the value with its own copy of its text.
    pub(crate) fn into_owned<'o>(self) -> Value<'o> {
        let own = |text: Cow<'s, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Undefined => Value::Undefined,
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Number(text) => Value::Number(own(text)),
            Self::String(Text::Raw(text)) => Value::String(Text::Raw(own(text))),
            Self::String(Text::Plain(text)) => Value::String(Text::Plain(own(text))),
            Self::List(text) => Value::List(own(text)),
            Self::Object(text) => Value::Object(own(text)),
        }
    }

    /// Returns the length of the text that it owns.
    pub(crate) fn owned_size(&self) -> usize {
        match self {
            Self::Number(Cow::Owned(text))
            | Self::List(Cow::Owned(text))
            | Self::Object(Cow::Owned(text))
            | Self::String(Text::Raw(Cow::Owned(text)) | Text::Plain(Cow::Owned(text))) => {
                text.len()
            }
            Self::Undefined
            | Self::Null
            | Self::Bool(_)
            | Self::Number(Cow::Borrowed(_))
            | Self::List(Cow::Borrowed(_))
            | Self::Object(Cow::Borrowed(_))
            | Self::String(Text::Raw(Cow::Borrowed(_)) | Text::Plain(Cow::Borrowed(_))) => 0,
        }
    }

    /// Returns whether it is null or undefined.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }

    /// Returns whether a condition takes it for true. False are false, null, undefined, the empty
    /// string and 0.
    pub fn truthy(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(digits) => {
                json::Decimal::parse(digits).is_some_and(|number| !number.is_zero())
            }
            Self::String(Text::Raw(raw)) => raw.len() > 2,
            Self::String(Text::Plain(text)) => !text.is_empty(),
            Self::List(_) | Self::Object(_) => true,
        }
    }

    /// Returns the text of a string, number or boolean; `None` for every other value.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Bool(true) => Some(Cow::Borrowed("true")),
            Self::Bool(false) => Some(Cow::Borrowed("false")),
            Self::Number(digits) => Some(Cow::Borrowed(digits)),
            Self::String(text) => Some(text.decode()),
            Self::Undefined | Self::Null | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns its text, for lists and objects their JSON, and nothing for null and undefined.
    pub fn rendered(&self) -> Cow<'_, str> {
        match self {
            Self::Undefined | Self::Null => Cow::Borrowed(""),
            Self::List(json) | Self::Object(json) => Cow::Borrowed(json),
            Self::Bool(_) | Self::Number(_) | Self::String(_) => self.text().unwrap_or_default(),
        }
    }

    /// Appends it as JSON; undefined as null.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Undefined | Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(json)
            | Self::List(json)
            | Self::Object(json)
            | Self::String(Text::Raw(json)) => {
                out.extend_from_slice(json.as_bytes());
            }
            Self::String(Text::Plain(text)) => json::write_string(text, out),
        }
    }

    /// Returns it as JSON for messages, where an undefined value is `undefined`.
    pub(crate) fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Undefined => Cow::Borrowed("undefined"),
            Self::Number(json)
            | Self::List(json)
            | Self::Object(json)
            | Self::String(Text::Raw(json)) => Cow::Borrowed(json),
            Self::Null | Self::Bool(_) | Self::String(Text::Plain(_)) => {
                let mut out = Vec::new();
                self.write_json(&mut out);
                String::from_utf8(out).map_or_else(|_| Cow::Borrowed(""), Cow::Owned)
            }
        }
    }

    /// Returns the name of its type with an article, such as `a number`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Returns its length in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Undefined | Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::List(text) | Self::Object(text) => text.len(),
            Self::String(Text::Raw(text) | Text::Plain(text)) => text.len(),
        }
    }
}

impl Text<'_> {
    /// Returns its characters, without quotes and escapes.
    pub fn decode(&self) -> Cow<'_, str> {
        match self {
            Self::Raw(raw) => json::decode(raw),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_is_false() {
        for json in ["null", "false", r#""""#, "0", "-0", "0.00", "0e7", ""] {
            assert!(!Value::from_json(json).truthy(), "{json}");
        }
        for json in [
            "true",
            r#"" ""#,
            r#""0""#,
            r#""false""#,
            "[]",
            "{}",
            "1e-400",
            "-1",
        ] {
            assert!(Value::from_json(json).truthy(), "{json}");
        }
    }

    #[test]
    fn writes_back_what_it_read() {
        for json in [
            r#""\u00e9\/""#,
            "1.10",
            "1e400",
            "9007199254740993",
            "[ 1, 2 ]",
            r#"{"b":1, "a":2}"#,
            "null",
        ] {
            let mut out = Vec::new();
            Value::from_json(json).write_json(&mut out);
            assert_eq!(out, json.as_bytes());
        }
    }
}
