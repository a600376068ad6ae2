//! JSON text by its slices: checked once as a whole, then taken apart level by level without a
//! tree. A slice keeps its digits and the order of its keys.

mod path;

use std::borrow::Cow;

use crate::field;
use kanat_json::JsonError;
pub(crate) use kanat_json::{Kind, MAX_DEPTH, write_string};
use path::fault_path;

/// Error of a text that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON at {error}")]
pub(crate) struct MalformedJson {
    error: JsonError,
    /// Path of the field in which the text stops being JSON.
    pub field: String,
}

/// A slice of checked text that holds one value and no white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value<'t>(&'t str);

impl MalformedJson {
    /// Error of a value at `path` of a longer text, whose fault is not in a field of its own.
    pub(crate) fn new(error: JsonError, path: &str) -> Self {
        let field = "body".to_owned();
        Self { error, field }.within(path)
    }

    /// Returns the error of a value that stands at `path` of a longer text.
    pub(crate) fn within(mut self, path: &str) -> Self {
        self.error
            .message
            .push_str(", counted from where the value begins");
        self.field = match self.field.as_str() {
            "body" => path.to_owned(),
            item if item.starts_with('[') => format!("{path}{item}"),
            member => field::member(path, member),
        };
        self
    }
}

impl<'t> Value<'t> {
    /// Checks the whole of `bytes`.
    pub(crate) fn parse(bytes: &'t [u8]) -> Result<Self, MalformedJson> {
        let malformed = |error| MalformedJson {
            error,
            field: fault_path(bytes),
        };
        let text = kanat_json::text(bytes).map_err(malformed)?;
        match kanat_json::check_text(text, MAX_DEPTH) {
            Ok(()) => Ok(Self(text.trim_ascii())),
            Err(fault) => Err(malformed(fault.locate(bytes))),
        }
    }

    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.0)
    }

    /// Returns the value as it was written.
    pub(crate) fn raw(self) -> &'t str {
        self.0
    }

    /// Returns the members of an object in their order, equal keys too; none for another value.
    pub(crate) fn members(self) -> Vec<(Cow<'t, str>, Value<'t>)> {
        let member = |(key, value)| (unescape(key).unwrap_or(Cow::Borrowed(key)), Value(value));
        kanat_json::occurrences(self.0).map(member).collect()
    }

    /// Returns the items of a list; none for another value.
    pub(crate) fn items(self) -> Vec<Value<'t>> {
        kanat_json::items(self.0).map(Value).collect()
    }

    /// Returns the text of a string; `None` for another value, and for half a surrogate pair.
    pub(crate) fn text(self) -> Option<Cow<'t, str>> {
        match self.kind() {
            Kind::String => unescape(self.0),
            Kind::Object | Kind::List | Kind::Number | Kind::Boolean | Kind::Null => None,
        }
    }
}

/// Writes `text` without its white space, so that it fits on one line. Returns false, and writes
/// nothing, when it is not JSON.
pub(crate) fn write_compact(text: &str, out: &mut Vec<u8>) -> bool {
    let Ok(value) = Value::parse(text.as_bytes()) else {
        return false;
    };
    let mut in_string = false;
    let mut escaped = false;
    for &byte in value.0.as_bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            in_string = byte == b'"';
        }
        out.push(byte);
    }
    true
}

/// Returns the text of a string with quotes and valid escapes; `None` for half a surrogate pair.
fn unescape(quoted: &str) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn says_where_a_text_breaks_and_stops_at_its_depth() {
        let error = |text: &str| Value::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            error("{\n  \"ä\": }"),
            "malformed JSON at line 2, column 8: found `}`, expected a value"
        );
        assert!(Value::parse("[".repeat(MAX_DEPTH + 1).as_bytes()).is_err());
    }

    #[test]
    fn takes_an_object_apart_in_order() {
        let value = Value::parse(
            br#" { "b" : [1.10, {"x":"}"}], "a\u0041" : 9007199254740993, "b": null } "#,
        )
        .unwrap();
        let members: Vec<_> = value
            .members()
            .into_iter()
            .map(|(k, v)| (k.into_owned(), v.raw()))
            .collect();
        let expect = [
            ("b", r#"[1.10, {"x":"}"}]"#),
            ("aA", "9007199254740993"),
            ("b", "null"),
        ];
        assert_eq!(members, expect.map(|(k, v)| (k.to_owned(), v)));
        assert_eq!(value.members()[0].1.items().len(), 2);
    }

    proptest! {
        #[test]
        fn agrees_with_serde_on_what_json_is(
            text in r#"[\[\]{}:,"\\0-9eE+\-. truefalsn\n]{0,12}"#,
        ) {
            let ours = Value::parse(text.as_bytes()).is_ok();
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(ours, theirs, "{}", text);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Value::parse(&bytes);
        }

        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            write_string(&text, &mut out);
            prop_assert_eq!(Value::parse(&out).unwrap().text().unwrap(), text);
        }

        #[test]
        fn compacting_changes_nothing_but_white_space(
            text in any::<String>(),
            digits in "[1-9][0-9]{0,30}\\.[0-9]{1,20}",
        ) {
            let mut string = Vec::new();
            write_string(&text, &mut string);
            let string = String::from_utf8(string).unwrap();
            let mut out = Vec::new();
            let spaced = format!("{{ \"z\" : {digits} ,\n\t\"a\": {string} }}");
            prop_assert!(write_compact(&spaced, &mut out));
            prop_assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("{{\"z\":{digits},\"a\":{string}}}")
            );
        }
    }
}
