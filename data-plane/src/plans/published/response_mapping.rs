//! How the answers of a published API are built and checked.

use kanat_engine::Answer;
use kanat_schema::Schema;

/// How the answers of a version of a published API are built.
#[derive(Debug)]
pub(crate) struct ResponseMapping {
    /// `None` when the flow's own output is the answer.
    pub mapping: Option<Answer>,
    pub schema: Option<Schema>,
    /// An answer that does not fit the schema is not given.
    pub strict: bool,
}

impl ResponseMapping {
    pub fn calls_adapters(&self) -> bool {
        self.mapping.as_ref().is_some_and(Answer::calls_adapters)
    }
}
