//! From YAML text to a definition, with everything that is wrong with it: one file for each part of
//! the language.

mod cursor;
mod expression;
mod flow;
mod mapping;
mod poll;
mod response;
mod source;
mod steps;
mod target;
mod verify;

use kanat_mapping::Lists;

use crate::definition::{Definition, LocatedName, ReferenceKind};
use crate::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Position, Severity};
use crate::fields::FieldUse;
use crate::yaml;
pub use response::{parse_response, parse_stored_response};
pub(crate) use target::literal_character;

/// Reads a definition. Errors are all that is wrong with it by itself, in order of place; after
/// [`MAX_DIAGNOSTICS`] of them the rest is not looked at.
pub fn parse(yaml: &str) -> Result<Definition, Vec<Diagnostic>> {
    read(yaml, Checker::default())
}

/// Reads a definition that was checked when it was stored. Names of members that no root has, which
/// builds before took, are undefined in it, as in its runs.
pub fn parse_stored(yaml: &str) -> Result<Definition, Vec<Diagnostic>> {
    read(
        yaml,
        Checker {
            stored: true,
            ..Checker::default()
        },
    )
}

fn read(yaml: &str, checker: Checker) -> Result<Definition, Vec<Diagnostic>> {
    let (tree, diagnostics) = yaml::read(yaml);
    let mut checker = Checker {
        diagnostics,
        ..checker
    };
    let definition = tree.and_then(|tree| flow::definition(&mut checker, tree));
    let mut diagnostics = checker.diagnostics;
    match definition {
        Some(definition) if diagnostics.is_empty() => Ok(Definition {
            references: checker.references,
            fields: checker.fields,
            warnings: checker.warnings,
            ..definition
        }),
        Some(_) | None => {
            diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
            Err(diagnostics)
        }
    }
}

/// State that the parts of a check share.
#[derive(Default)]
struct Checker {
    diagnostics: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    references: Vec<(ReferenceKind, LocatedName)>,
    fields: Vec<FieldUse>,
    /// All steps of the flow, in order.
    step_names: Vec<String>,
    /// Lists of the `each` blocks around what is being checked.
    lists: Lists,
    /// Names from `trigger` to the value that `source.verify` compares, which runs have masked.
    compared: Option<[String; 2]>,
    /// Whatever step an expression names is taken for one that ran before.
    any_step: bool,
    /// The definition was checked when it was stored, maybe by a build that knew fewer faults.
    stored: bool,
}

impl Checker {
    fn report(&mut self, at: Position, path: &str, message: impl Into<String>) {
        if !self.is_full() {
            self.diagnostics.push(Diagnostic::error(at, path, message));
        }
    }

    /// Notes a part that is valid and does not do what it seems to do.
    fn warn(&mut self, at: Position, path: &str, message: &str) {
        if self.warnings.len() < MAX_DIAGNOSTICS {
            self.warnings.push(Diagnostic {
                severity: Severity::Warning,
                ..Diagnostic::error(at, path, message)
            });
        }
    }

    /// Returns whether no further fault is reported, so that nothing more has to be checked.
    fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }
}

#[cfg(test)]
pub(crate) mod tests;
