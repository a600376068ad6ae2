//! A compiled schema: what may be asked of it.

use std::borrow::Cow;

use kanat_json::JsonError;

use crate::document::Document;
use crate::node::{Id, Program};
use crate::violation::{self, Violation};
use crate::{check, compile, parameters};

/// Why a text is no schema that this crate takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", if pointer.is_empty() { "the schema" } else { pointer })]
pub struct Error {
    /// The JSON pointer of the fault in the schema; empty for the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// A schema ready to check documents. May be shared among threads.
#[derive(Debug)]
pub struct Schema {
    program: Program,
    /// The nodes that speak of a whole document.
    of_the_whole: Vec<Id>,
}

impl Schema {
    /// Compiles the text of a schema of the draft that its `$schema` names, 2020-12 when it names
    /// none.
    ///
    /// # Errors
    /// For text that is no JSON or longer than [`crate::MAX_SCHEMA_BYTES`], a schema that its draft
    /// does not allow, a reference that leaves the schema, and whatever could make a check take
    /// long.
    pub fn compile(text: &str) -> Result<Self, Error> {
        let program = compile::compile(text)?;
        let of_the_whole = parameters::speaking(&program, program.root);
        Ok(Self {
            program,
            of_the_whole,
        })
    }

    /// All that is wrong with a JSON text, at most [`crate::MAX_VIOLATIONS`], in the order of the
    /// document; nothing when it fits. A document that would take too long is wrong as a whole. Of
    /// equal keys the last counts.
    ///
    /// # Errors
    /// For text that is no JSON: what `kanat_json::check` says of it, which needs not be asked
    /// before.
    pub fn violations(&self, json_text: &[u8]) -> Result<Vec<Violation>, JsonError> {
        let document = Document::read(Cow::Borrowed(kanat_json::text(json_text)?))?;
        Ok(check::check(&self.program, &document)
            .err()
            .unwrap_or_default())
    }

    /// [`Self::violations`], where text that is no JSON is one of the whole.
    ///
    /// # Errors
    /// What is wrong, at least one violation.
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

    /// The JSON object that the parameters of a path and a query make: numbers, booleans, nulls and
    /// lists where the schema asks for them, text where it does not, or where the text is no such
    /// thing. A name that comes again makes a list.
    pub fn read_parameters<'p>(
        &self,
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> String {
        parameters::read(&self.program, &self.of_the_whole, pairs)
    }
}
