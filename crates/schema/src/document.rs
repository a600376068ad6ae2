//! A JSON text that has been read once: a flat list of its values, each a slice of the text, so
//! that numbers keep their digits and nothing is copied. Of equal keys the last one counts.

mod path;
mod read;

pub(crate) use path::{Paths, Step};

use std::borrow::Cow;

use kanat_json::JsonError;
pub(crate) use kanat_json::Kind;

use crate::number::Number;

/// Value, or key, which stands before its value.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    /// The entry after this value and all in it.
    next: u32,
    /// Number of items of a list, number of keys of an object as they stand, or hash of a key.
    count: u32,
    kind: Kind,
    /// A string has escapes, a number is written without a fraction and an exponent, or a boolean
    /// is true.
    flag: bool,
    /// An equal key follows this one, or the object has such keys.
    repeated: bool,
}

#[derive(Debug)]
pub(crate) struct Document<'t> {
    text: Cow<'t, str>,
    entries: Vec<Entry>,
}

impl<'t> Document<'t> {
    /// Reads a text that is JSON, nested at most [`kanat_json::MAX_DEPTH`] deep.
    ///
    /// # Errors
    /// The text is no JSON.
    pub(crate) fn read(text: impl Into<Cow<'t, str>>) -> Result<Self, JsonError> {
        let text = text.into();
        match read::entries(&text) {
            Ok(entries) => Ok(Self { text, entries }),
            Err(fault) => Err(fault.locate(text.as_bytes())),
        }
    }

    pub(crate) fn root(&self) -> Value<'_> {
        self.value(0)
    }

    pub(crate) fn value(&self, index: u32) -> Value<'_> {
        Value {
            text: &self.text,
            entries: &self.entries,
            index,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }
}

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'d> {
    text: &'d str,
    entries: &'d [Entry],
    index: u32,
}

/// A key of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'d>(Value<'d>);

impl<'d> Key<'d> {
    pub(crate) fn hash(self) -> u32 {
        self.0.entry().count
    }

    pub(crate) fn is(self, name: &str) -> bool {
        self.0.text_is(name)
    }

    pub(crate) fn name(self) -> Cow<'d, str> {
        self.0.string()
    }

    /// Returns the key as a value, for the rules of names.
    pub(crate) fn as_value(self) -> Value<'d> {
        self.0
    }
}

impl<'d> Value<'d> {
    fn entry(self) -> &'d Entry {
        &self.entries[self.index as usize]
    }

    pub(crate) fn index(self) -> u32 {
        self.index
    }

    pub(crate) fn kind(self) -> Kind {
        self.entry().kind
    }

    pub(crate) fn raw(self) -> &'d str {
        let entry = self.entry();
        &self.text[entry.start as usize..entry.end as usize]
    }

    pub(crate) fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Boolean).then_some(self.entry().flag)
    }

    pub(crate) fn as_number(self) -> Option<Number<'d>> {
        (self.kind() == Kind::Number).then(|| Number::new(self.raw(), self.entry().flag))
    }

    pub(crate) fn as_str(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| self.string())
    }

    /// Returns the number of items of a list or members of an object.
    pub(crate) fn count(self) -> usize {
        match self.kind() {
            Kind::Object if self.entry().repeated => self.members().count(),
            Kind::Object | Kind::List => self.entry().count as usize,
            Kind::Null | Kind::Boolean | Kind::Number | Kind::String => 0,
        }
    }

    /// Returns the number of items of a list or of members of an object, equal keys included, in
    /// constant time.
    pub(crate) fn size(self) -> u64 {
        match self.kind() {
            Kind::Object | Kind::List => u64::from(self.entry().count),
            Kind::Null | Kind::Boolean | Kind::Number | Kind::String => 0,
        }
    }

    pub(crate) fn items(self) -> impl Iterator<Item = Value<'d>> {
        let mut next = self.index + 1;
        let end = if self.kind() == Kind::List {
            self.entry().next
        } else {
            next
        };
        std::iter::from_fn(move || {
            let item = (next < end).then_some(Value {
                index: next,
                ..self
            })?;
            next = item.entry().next;
            Some(item)
        })
    }

    /// Iterates over the members of an object, each key once, with its last value.
    pub(crate) fn members(self) -> impl Iterator<Item = (Key<'d>, Value<'d>)> {
        let mut next = self.index + 1;
        let end = if self.kind() == Kind::Object {
            self.entry().next
        } else {
            next
        };
        std::iter::from_fn(move || {
            while next < end {
                let key = Value {
                    index: next,
                    ..self
                };
                let value = Value {
                    index: next + 1,
                    ..self
                };
                next = value.entry().next;
                if !key.entry().repeated {
                    return Some((Key(key), value));
                }
            }
            None
        })
    }

    pub(crate) fn member(self, name: &str) -> Option<Value<'d>> {
        self.members()
            .find(|(key, _)| key.is(name))
            .map(|(_, value)| value)
    }

    fn string(self) -> Cow<'d, str> {
        let raw = self.raw();
        if self.entry().flag {
            kanat_json::decode(raw)
        } else {
            Cow::Borrowed(&raw[1..raw.len() - 1])
        }
    }

    fn text_is(self, text: &str) -> bool {
        let raw = self.raw();
        if self.entry().flag {
            kanat_json::decode(raw) == text
        } else {
            &raw[1..raw.len() - 1] == text
        }
    }
}

/// Returns the hash of a key, FNV-1a. It is for tables of a schema's own names only, which requests
/// cannot flood.
pub(crate) fn hash(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_values_as_they_stand() {
        let document = Document::read(r#"{"a":[1.10,"x\u0041",null,true],"b":{}}"#).unwrap();
        let root = document.root();
        let list = root.member("a").unwrap();
        assert_eq!(
            list.items().map(Value::raw).collect::<Vec<_>>(),
            ["1.10", r#""x\u0041""#, "null", "true"]
        );
        assert_eq!(
            list.items().nth(1).and_then(Value::as_str).as_deref(),
            Some("xA")
        );
        assert_eq!(root.count(), 2);
        assert_eq!(list.count(), 4);
        assert_eq!(root.member("b").unwrap().count(), 0);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        let mut text = r#"{"a":1,"\u0061":2,"b":3,"a":[4]"#.to_owned();
        for index in 0..40 {
            text.push_str(&format!(",\"k{index}\":0"));
        }
        text.push_str(",\"b\":5}");
        let document = Document::read(text).unwrap();
        assert_eq!(document.root().member("a").map(Value::raw), Some("[4]"));
        assert_eq!(document.root().member("b").map(Value::raw), Some("5"));
        assert_eq!(document.root().count(), 42);
    }
}
