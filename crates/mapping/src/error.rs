//! Errors of parsing a text, and of evaluating an expression on a value.

use std::fmt;

use kanat_model::message::{ErrorKind, Failure};

/// Error of a text that is no expression, template or JSON: its place, the text that was found and
/// the one that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// Bytes from the start of the text that was parsed.
    pub offset: usize,
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }
}

/// Error of an expression that could not be evaluated on a message. It is final, because the next
/// attempt would fail likewise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationError {
    /// `Mapping`; `Configuration` when a lookup table is gone; `Adapter` when an adapter failed.
    pub kind: ErrorKind,
    /// The target field, with its dots; the index of an item in brackets.
    pub field: Option<String>,
    pub expression: String,
    /// The transform or the operator as it is written, without its arguments.
    pub transform: Option<&'static str>,
    /// The value at fault, as JSON, cut at 200 characters and without secrets; absent when it may
    /// hold one of a connector.
    pub value: Option<String>,
    /// Description of the fault.
    pub message: String,
}

/// Greatest number of characters of a value that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 200;

impl EvaluationError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            field: None,
            expression: String::new(),
            transform: None,
            value: None,
            message: message.into(),
        }
    }

    pub(crate) fn mapping(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Mapping, message)
    }

    /// Puts `name` in front of the field that is already known.
    pub(crate) fn within(mut self, name: &str) -> Self {
        self.field = Some(match self.field.take() {
            Some(inner) if inner.starts_with('[') => format!("{name}{inner}"),
            Some(inner) => format!("{name}.{inner}"),
            None => name.to_owned(),
        });
        self
    }
}

/// Returns JSON at a length that an error can show.
pub(crate) fn shortened(json: &str) -> String {
    let mut shown: String = json.chars().take(MAX_SHOWN_CHARACTERS).collect();
    if shown.len() < json.len() {
        shown.push('…');
    }
    shown
}

/// Returns the word for a part of an expression, by its name.
fn kind_of(name: &str) -> &'static str {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        "transform"
    } else {
        "operator"
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "field {field:?}: ")?;
        }
        // What the value was comes before what is long: the text may be cut. That a value is
        // missing is said in the message.
        match self.value.as_deref() {
            None | Some("undefined" | "null") => {}
            Some(value) => write!(f, "given {value}: ")?,
        }
        write!(f, "{}", self.message)?;
        match &self.transform {
            Some(name) => write!(
                f,
                ", in the {} {name} of the expression `{}`",
                kind_of(name),
                self.expression
            ),
            None => write!(f, ", in the expression `{}`", self.expression),
        }
    }
}

impl std::error::Error for EvaluationError {}

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Self {
        Self {
            kind: error.kind,
            message: error.to_string(),
            field: error.field,
            expression: (!error.expression.is_empty()).then_some(error.expression),
        }
    }
}
