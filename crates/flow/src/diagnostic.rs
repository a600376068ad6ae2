//! Faults of a definition, with their positions.

use std::fmt;

/// The most diagnostics that one definition gets.
pub const MAX_DIAGNOSTICS: usize = 100;

/// One thing that is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Effect on the definition.
    pub severity: Severity,
    /// Lower case, no full stop: what was found, what was expected, and the nearest known name
    /// where there is one.
    pub message: String,
    /// The YAML path, as in `steps[0].params.email`; empty for the definition as a whole.
    pub path: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The definition is refused.
    Error,
    /// A draft may have it.
    Warning,
}

/// A place in the text of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Position {
    /// Position of a node that stands in no text.
    pub(crate) const UNKNOWN: Self = Self { line: 1, column: 1 };
}

impl Diagnostic {
    /// Returns the same as a warning.
    pub fn into_warning(self) -> Self {
        Self {
            severity: Severity::Warning,
            ..self
        }
    }

    pub(crate) fn error(at: Position, path: impl Into<String>, message: impl Into<String>) -> Self {
        let path = path.into();
        let message = message.into();
        Self {
            severity: Severity::Error,
            message,
            path,
            line: at.line,
            column: at.column,
        }
    }
}

/// `line 3, column 5, mapping.total: found ...`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}
