//! The flow language as tables, for editors and for the JSON Schema: the keys of definitions, and
//! what expressions are made of. Tests hold the tables to the compiler.

mod functions;
mod keys;
mod schema;
mod transforms;

pub use functions::{FUNCTIONS, OPERATORS, ROOTS};
pub use keys::KEYS;
pub use schema::schema;

/// Returns the transforms.
pub fn transforms() -> impl Iterator<Item = &'static Function> {
    transforms::VALUES.iter().chain(transforms::LISTS)
}

/// A key of definitions.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Names with dots between them; `[]` stands for the items of a list, `*` for names of the
    /// user's own.
    pub path: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Sentence on its meaning.
    pub text: &'static str,
    /// True if the map that holds the key must have it.
    pub required: bool,
    /// Value of a definition without it.
    pub default: Option<&'static str>,
}

/// Values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Letters, digits, `_` and `-`.
    Name,
    /// Text with `{{ }}`.
    Template,
    /// A template, or a list of those.
    Templates,
    /// Expression, or a constant.
    Expression,
    /// Duration such as `30s`.
    Duration,
    /// Duration, or a number of seconds.
    Tolerance,
    /// Retry policy such as `3x exponential(30s)`.
    Retry,
    /// Whole number within bounds, both ends included.
    Whole {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// One of a few words.
    Words(&'static [&'static str]),
    /// One of a few words, in capitals or not.
    Methods(&'static [&'static str]),
    /// Map whose keys are in the table.
    Map,
    /// Map from names of the user's own to templates.
    TemplateMap,
    /// Map from names of the user's own to anything.
    AnyMap,
    /// List of maps whose keys are in the table.
    List,
    /// Fields of a mapping: expressions, templates and mapped lists.
    Fields,
}

impl Kind {
    /// Returns the name of the type, as editors show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Name => "name",
            Self::Template => "template",
            Self::Templates => "template or list",
            Self::Expression => "expression",
            Self::Duration | Self::Tolerance => "duration",
            Self::Retry => "retry",
            Self::Whole { .. } => "whole number",
            Self::Words(_) | Self::Methods(_) => "word",
            Self::Map | Self::TemplateMap | Self::AnyMap | Self::Fields => "map",
            Self::List => "list",
        }
    }

    /// Returns the words that it may be; none when it is not one of a few.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Words(words) | Self::Methods(words) => words,
            Self::Text
            | Self::Name
            | Self::Template
            | Self::Templates
            | Self::Expression
            | Self::Duration
            | Self::Tolerance
            | Self::Retry
            | Self::Whole { .. }
            | Self::Map
            | Self::TemplateMap
            | Self::AnyMap
            | Self::List
            | Self::Fields => &[],
        }
    }
}

/// A transform, or a function of expressions.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// As it is written.
    pub name: &'static str,
    /// In their order.
    pub arguments: &'static [Argument],
    /// Sentence on its behaviour.
    pub text: &'static str,
    /// An expression with it.
    pub example: Example,
}

/// Argument of a function.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Name for people.
    pub name: &'static str,
    /// `expression`, `value`, `text`, `word`, `number` or `pattern`.
    pub kind: &'static str,
    /// True if the argument may not be left out.
    pub required: bool,
    /// Sentence on its meaning.
    pub text: &'static str,
}

/// An expression and its value.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The expression.
    pub expression: &'static str,
    /// JSON of `source`; absent when the expression does not read it.
    pub source: Option<&'static str>,
    /// JSON of its value; absent where that changes, or depends on the environment.
    pub value: Option<&'static str>,
}

/// Operator of expressions.
#[derive(Debug, Clone, Copy)]
pub struct Operator {
    /// As it is written.
    pub name: &'static str,
    /// Sentence on its behaviour.
    pub text: &'static str,
    /// An expression with it.
    pub example: &'static str,
}

/// Root of paths.
#[derive(Debug, Clone, Copy)]
pub struct RootEntry {
    /// As it is written.
    pub name: &'static str,
    /// Sentence on what it leads to.
    pub text: &'static str,
    /// Part of a flow in which the root is known.
    pub known_in: &'static str,
}

const fn argument(name: &'static str, kind: &'static str, text: &'static str) -> Argument {
    Argument {
        name,
        kind,
        required: true,
        text,
    }
}

const fn optional(name: &'static str, kind: &'static str, text: &'static str) -> Argument {
    Argument {
        required: false,
        ..argument(name, kind, text)
    }
}

#[cfg(test)]
mod tests;
