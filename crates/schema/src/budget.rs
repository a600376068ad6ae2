//! Work that may still be done, in steps of some nanoseconds each.

/// What any document may take.
const OF_A_DOCUMENT: u64 = 1_500_000;
/// What each of its bytes adds to that.
const OF_A_BYTE: u64 = 3;
/// What it may take to compile a schema.
const OF_A_SCHEMA: u64 = 30_000_000;

#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Budget {
    /// For a document of so many bytes.
    pub(crate) fn of_document(length: usize) -> Self {
        Self(OF_A_DOCUMENT + OF_A_BYTE * length as u64)
    }

    pub(crate) fn of_schema() -> Self {
        Self(OF_A_SCHEMA)
    }

    /// Takes so many steps; `false` when there are fewer, and none from then on.
    #[must_use]
    pub(crate) fn spend(&mut self, steps: u64) -> bool {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}
