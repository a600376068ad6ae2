//! The compiled schema and its operations.

use std::borrow::Cow;

use kanat_json::JsonError;

use crate::document::Document;
use crate::node::{Id, Program};
use crate::violation::{self, Violation};
use crate::{check, compile, members, parameters, strings};

/// Error of a text that is no schema, or none that this crate takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", if pointer.is_empty() { "the schema" } else { pointer })]
pub struct Error {
    /// The JSON pointer of the fault in the schema; empty for the whole.
    pub pointer: String,
    /// Description of the fault.
    pub message: String,
}

/// A schema ready to check documents. May be shared among threads.
#[derive(Debug)]
pub struct Schema {
    program: Program,
    /// Nodes that apply to a whole document.
    document_nodes: Vec<Id>,
}

impl Schema {
    /// Compiles the text of a schema of the draft that its `$schema` names, 2020-12 when it names
    /// none.
    ///
    /// # Errors
    /// The text is no JSON or longer than [`crate::MAX_SCHEMA_BYTES`], its draft does not allow the
    /// schema, a reference leaves the schema, or a check could take long.
    pub fn compile(text: &str) -> Result<Self, Error> {
        let program = compile::compile(text)?;
        let document_nodes = parameters::applicable_nodes(&program, program.root);
        Ok(Self {
            program,
            document_nodes,
        })
    }

    /// Returns the violations of a JSON text, at most [`crate::MAX_VIOLATIONS`], in the order of
    /// the document; none when it fits. A document that would take too long violates the schema as
    /// a whole. Of equal keys the last counts.
    ///
    /// # Errors
    /// The text is no JSON. It needs no check before.
    pub fn violations(&self, json_text: &[u8]) -> Result<Vec<Violation>, JsonError> {
        let document = Document::read(Cow::Borrowed(kanat_json::text(json_text)?))?;
        Ok(check::check(&self.program, &document)
            .err()
            .unwrap_or_default())
    }

    /// Checks a JSON text. A text that is no JSON violates the schema as a whole.
    ///
    /// # Errors
    /// At least one violation.
    pub fn validate(&self, json_text: &[u8]) -> Result<(), Vec<Violation>> {
        let violations = self.violations(json_text).unwrap_or_else(|error| {
            vec![Violation {
                field: violation::field(&[], None),
                message: format!("is not JSON: {error}"),
            }]
        });
        if violations.is_empty() {
            Ok(())
        } else {
            Err(violations)
        }
    }

    /// Returns whether no string can fit the schema, as of one with `type: object`. `false` where
    /// that is not known for certain.
    pub fn refuses_strings(&self) -> bool {
        strings::are_refused(&self.program)
    }

    /// Returns the members that every object needs to fit the schema and that are not among
    /// `names`. Members that only some objects need are left out.
    pub fn missing_members(&self, names: &[&str]) -> Vec<&str> {
        members::missing(&self.program, names)
    }

    /// Returns those of `names` that no object has which fits the schema, whatever their values
    /// are. Names that only some objects may not have are left out.
    pub fn refused_members<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        members::refused(&self.program, names)
    }

    /// Returns the parameters of a path and a query as a JSON object, with numbers, booleans, nulls
    /// and lists where the schema expects them, and text everywhere else. A name that comes again
    /// makes a list.
    pub fn read_parameters<'p>(
        &self,
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> String {
        parameters::read(&self.program, &self.document_nodes, pairs)
    }
}
