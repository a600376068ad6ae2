//! Output of client commands: tables for people, JSON and YAML for programs. Digits and key order
//! stay as they came.

pub mod excerpt;
pub mod json;
pub mod progress;
pub mod table;
pub mod yaml;

use std::io::{IsTerminal, Write};

use anyhow::Result;

pub use json::Json;

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Table,
    Json,
    Yaml,
}

impl Format {
    /// Prints `answer`; as a table in the words of `table`.
    pub fn print(self, answer: &Json, table: impl FnOnce(&Json) -> String) -> Result<()> {
        match self {
            Self::Table => line(&table(answer)),
            Self::Json => line(&answer.pretty()),
            Self::Yaml => line(&yaml::write(answer)),
        }
    }
}

/// Prints `text` as lines of standard output; an error when its reader is gone.
pub fn line(text: &str) -> Result<()> {
    let text = text.trim_end_matches('\n');
    if !text.is_empty() {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

/// Prints `text` as lines of standard error: what to do next, and what a person should know. It is
/// lost when nobody reads.
pub fn hint(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text.trim_end_matches('\n'));
}

/// Returns whether standard output is a terminal.
pub fn is_seen() -> bool {
    std::io::stdout().is_terminal()
}
