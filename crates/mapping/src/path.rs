//! Paths into a document, and following them.

use crate::effort::CALL;
use crate::{Effort, Root, Value, json};

/// A root and the way from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub root: Root,
    pub segments: Vec<Segment>,
    /// Where a [`crate::plan::Plan`] keeps the value that the segments before the first `[*]` lead
    /// to.
    pub slot: Option<usize>,
}

/// What a visit to paths does with each.
pub(crate) type Visit<'v> = dyn FnMut(&mut Path) + 'v;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Name(String),
    Index(usize),
    /// `[*]`
    Each,
}

impl Path {
    /// The segments before the first `[*]`, and the rest.
    pub fn split(&self) -> (&[Segment], &[Segment]) {
        let each = self
            .segments
            .iter()
            .position(|segment| *segment == Segment::Each)
            .unwrap_or(self.segments.len());
        self.segments.split_at(each)
    }

    /// The names that it begins with.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().map_while(|segment| match segment {
            Segment::Name(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Each => None,
        })
    }
}

/// Follows segments from a value in its document. Of equal keys, the last counts. What it gives is
/// of no use when the effort is spent.
pub(crate) fn follow<'s>(mut json: &'s str, segments: &[Segment], effort: &Effort) -> Value<'s> {
    for (index, segment) in segments.iter().enumerate() {
        let next = match segment {
            Segment::Name(name) => effort
                .occurrences(json)
                .filter(|(key, _)| json::key_is(key, name))
                .last()
                .map(|(_, value)| value),
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

/// The list of what `rest` leads to in every item of a list that has it.
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
