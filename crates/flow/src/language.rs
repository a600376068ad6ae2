//! The flow language as tables, for editors and for the JSON Schema: the keys of definitions,
//! beside the tables of expressions. The compiler reads the same tables.

mod keys;
mod schema;

pub use kanat_mapping::language::{
    Example, FUNCTIONS, Function, OPERATORS, OperatorEntry, Parameter, RootEntry, roots, transforms,
};
pub use keys::KEYS;
pub use schema::schema;

/// Returns the names of the keys of the map at a path.
pub(crate) fn names(path: &str) -> impl Iterator<Item = &'static str> {
    schema::children(path).map(schema::name)
}

/// Returns `; <name> is a key of ...` for a key that belongs elsewhere, or an empty text.
pub(crate) fn place_hint(name: &str) -> String {
    if name == "adapter" {
        return "; `adapter` is a key of the definition itself, beside `source` and `target`: the \
                type of the adapter (source, transform or target) says where it runs"
            .to_owned();
    }
    let mut places: Vec<String> = Vec::new();
    for key in KEYS.iter().filter(|key| schema::name(key) == name) {
        let place = match key.path.rsplit_once('.').map(|(parent, _)| parent) {
            None => "of the definition itself".to_owned(),
            Some("steps[]") => "of a step".to_owned(),
            Some(parent) => format!("of `{parent}`"),
        };
        places.push(place);
    }
    if places.is_empty() {
        return String::new();
    }
    format!("; `{name}` is a key {}", places.join(" and "))
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

#[cfg(test)]
mod tests;
