//! YAML as a tree that remembers where everything stands. Knows nothing of flows.
//!
//! The tree is bounded: so much text, so deep, so many nodes, aliases counted as often as they are
//! used.

mod anchors;
mod compose;
mod json;
mod scalar;
mod syntax;

pub(crate) use anchors::{Anchor, locate};
pub(crate) use compose::read;

use crate::diagnostic::Position;

/// The longest text in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting.
pub(crate) const MAX_DEPTH: usize = 64;
/// The most nodes, each use of an alias counted.
pub(crate) const MAX_NODES: usize = 100_000;
/// The most bytes of scalars, each use of an alias counted.
const MAX_SCALAR_BYTES: usize = 4 << 20;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Position,
}

/// Value of a node, by the core schema of YAML 1.2.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<Member>),
    /// Something that has been reported already.
    Invalid,
}

/// A number, digits kept.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    /// As it is written.
    pub(crate) text: String,
    /// As JSON writes it; `None` for what JSON does not have, and for `007`, which may have been
    /// meant as a text.
    pub(crate) json: Option<String>,
}

/// A text.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Places of its characters in the file; none when it did not come from YAML.
    pub(crate) anchors: Vec<Anchor>,
    /// The bytes in which it is written, quotes and all; `None` when it did not come from YAML.
    pub(crate) written: Option<std::ops::Range<usize>>,
}

/// A key of a map and its value.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) at: Position,
    pub(crate) value: Node,
}

impl Node {
    /// The value as an error names it: `the number 5`, `a list`.
    pub(crate) fn described(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Number(number) => format!("the number {}", number.text),
            Value::Text(text) => crate::duration::quoted(&text.text),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            Value::Invalid => "something wrong".to_owned(),
        }
    }
}

/// `path` and a key after it: `steps[0].params`, `mapping["customer.name"]`.
pub(crate) fn member_path(path: &str, name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", crate::duration::quoted(name)),
    }
}

#[cfg(test)]
mod tests;
