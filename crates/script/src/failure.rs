//! Why an adapter gave nothing, and what it logged.

use std::fmt;

/// Cause of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The code is no JavaScript, or has no `transform`.
    Code,
    /// The code threw, or gave what is no JSON.
    Thrown,
    /// The code used up its time.
    Time,
    /// The code used up its memory.
    Memory,
    /// Not the code's doing: no process could run it, or the machine gave that process no time.
    /// Another try may fare better.
    Unavailable,
}

impl Kind {
    /// As metrics name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Thrown => "thrown",
            Self::Time => "time",
            Self::Memory => "memory",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A call that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    /// Position in the code, when it is known.
    pub position: Option<Position>,
}

/// A place in an adapter's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            position: None,
        }
    }

    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(
            Kind::Unavailable,
            format!("the adapter could not be run: {message}"),
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => {
                write!(f, "line {line}, column {column}: {}", self.message)
            }
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}
