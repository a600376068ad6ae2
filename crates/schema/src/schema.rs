//! A compiled schema: what may be asked of it.

use std::borrow::Cow;

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
    /// Compiles the text of a schema of the draft that its `$schema` names, 2020-12 when it names none.
    ///
    /// # Errors
    /// For text that is no JSON or longer than [`crate::MAX_SCHEMA_BYTES`], a schema that its draft does not allow, a
    /// reference that leaves the schema, and whatever could make a check take long.
    pub fn compile(text: &str) -> Result<Self, Error> {
        let program = compile::compile(text)?;
        let of_the_whole = parameters::speaking(&program, program.root);
        Ok(Self { program, of_the_whole })
    }

    /// Checks a JSON text, and tells all that is wrong with it, at most [`crate::MAX_VIOLATIONS`], in the order of the
    /// document. Text that is no JSON is a violation of the root; so is a document that would take too long. Of equal
    /// keys the last counts.
    ///
    /// # Errors
    /// What is wrong, at least one violation.
    pub fn validate(&self, json_text: &[u8]) -> Result<(), Vec<Violation>> {
        let broken = |message: String| {
            vec![Violation { field: violation::field(&[], None), message: format!("is not JSON: {message}") }]
        };
        let text = std::str::from_utf8(json_text).map_err(|_| broken("it is not UTF-8".to_owned()))?;
        let document = Document::read(Cow::Borrowed(text)).map_err(broken)?;
        check::check(&self.program, &document)
    }

    /// The JSON object that the parameters of a path and a query make: numbers, booleans, nulls and lists where the schema
    /// asks for them, text where it does not, or where the text is no such thing. A name that comes again makes a list.
    pub fn read_parameters<'p>(&self, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
        parameters::read(&self.program, &self.of_the_whole, pairs)
    }
}
