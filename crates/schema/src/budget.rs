//! The budget of work, in steps of some nanoseconds each.

/// Steps for any document.
const DOCUMENT_STEPS: u64 = 1_500_000;
/// Additional steps for each byte of a document.
const STEPS_PER_BYTE: u64 = 3;
/// Steps for compiling a schema.
const SCHEMA_STEPS: u64 = 30_000_000;

#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Budget {
    /// Creates the budget for a document of `length` bytes.
    pub(crate) fn of_document(length: usize) -> Self {
        Self(DOCUMENT_STEPS + STEPS_PER_BYTE * length as u64)
    }

    pub(crate) fn of_schema() -> Self {
        Self(SCHEMA_STEPS)
    }

    /// Takes steps. Returns `false` when there are fewer, and leaves none then.
    #[must_use]
    pub(crate) fn spend(&mut self, steps: u64) -> bool {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}
