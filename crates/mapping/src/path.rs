//! Paths into a document.

use std::borrow::Cow;
use std::fmt;

use crate::effort::CALL;
use crate::parse::is_word;
use crate::{Effort, Root, Value};

/// Path of a value: a root and the segments from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub root: Root,
    /// Lists between this place and the one whose `item` or `index` it is.
    pub outward: usize,
    /// True if a plan of the mapping may find it: the items of lists within an expression are not
    /// known to any.
    pub is_planned: bool,
    pub segments: Vec<Segment>,
    /// Slot of the value at the segments before the first `[*]`, when a [`crate::plan::Plan`] finds
    /// it.
    pub slot: Option<usize>,
}

/// Function that a visit calls for each path.
pub(crate) type Visit<'v> = dyn FnMut(&mut Path) + 'v;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Name(String),
    Index(usize),
    /// `[*]`
    Each,
}

impl Path {
    /// Returns the segments before the first `[*]`, and the rest.
    pub fn split(&self) -> (&[Segment], &[Segment]) {
        let each = self
            .segments
            .iter()
            .position(|segment| *segment == Segment::Each)
            .unwrap_or(self.segments.len());
        self.segments.split_at(each)
    }

    /// Iterates over the names that it begins with.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Each => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&"outer.".repeat(self.outward))?;
        f.write_str(self.root.as_str())?;
        for segment in &self.segments {
            match segment {
                Segment::Name(name) if name.chars().all(is_word) => write!(f, ".{name}")?,
                Segment::Name(name) => write!(f, "[{name:?}]")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// Follows segments from a value in its document. Of equal keys, the last counts. The result means
/// nothing when no effort is left.
pub(crate) fn follow<'s>(mut json: &'s str, segments: &[Segment], effort: &Effort) -> Value<'s> {
    for (index, segment) in segments.iter().enumerate() {
        let next = match segment {
            Segment::Name(name) => effort.member(json, name),
            Segment::Index(index) => effort.items(json).nth(*index),
            Segment::Each => return follow_each(json, &segments[index + 1..], effort),
        };
        match next {
            Some(next) => json = next,
            None => return Value::Undefined,
        }
    }
    Value::from_json(json)
}

/// Follows segments from a value, which owns its text or not.
pub(crate) fn follow_value<'s>(
    value: Value<'s>,
    segments: &[Segment],
    effort: &Effort,
) -> Value<'s> {
    match value {
        Value::List(Cow::Borrowed(json)) | Value::Object(Cow::Borrowed(json)) => {
            follow(json, segments, effort)
        }
        Value::List(Cow::Owned(json)) | Value::Object(Cow::Owned(json)) => {
            follow(&json, segments, effort).into_owned()
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Value::Undefined
        }
    }
}

/// Returns the list of the values that `rest` leads to in the items of a list.
fn follow_each<'s>(list: &'s str, rest: &[Segment], effort: &Effort) -> Value<'s> {
    if !list.starts_with('[') {
        return Value::Undefined;
    }
    if rest.is_empty() {
        return Value::from_json(list);
    }
    effort.spend(CALL);
    let mut found = Vec::with_capacity(64);
    for item in effort.items(list) {
        let value = follow(item, rest, effort);
        if value != Value::Undefined {
            found.push(if found.is_empty() { b'[' } else { b',' });
            value.write_json(&mut found);
        }
    }
    if found.is_empty() {
        found.push(b'[');
    }
    found.push(b']');
    String::from_utf8(found).map_or(Value::Undefined, Value::from_owned_json)
}
