//! How the answers of a published API are built and checked.

use kanat_engine::Answer;
use kanat_model::published_api::Validation;
use kanat_schema::Schema;

/// How the answers of a version of a published API are built.
#[derive(Debug)]
pub(crate) struct ResponseMapping {
    /// `None` when the flow's own output is the answer.
    pub mapping: Option<Answer>,
    pub schema: Option<Schema>,
    /// Fate of an answer that does not fit the schema.
    pub validation: Validation,
}

impl ResponseMapping {
    pub fn calls_adapters(&self) -> bool {
        self.mapping.as_ref().is_some_and(Answer::calls_adapters)
    }
}
