//! Division of queued operations into batches.

use crate::sqlite::inbox::Operation;
use crate::sqlite::operation::Work;

/// Largest number of operations in one batch. Its transaction may apply the journal's pending
/// writes as well.
const MAX_BATCH_OPERATIONS: usize = 1_024;
/// Largest number of bytes of bodies in one batch, which bounds the duration of its commit. A
/// single larger operation is a batch of its own.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

/// Operations that are committed together.
pub(super) struct Batch {
    pub operations: Vec<Operation>,
    /// True if the transaction applies the journal's pending writes first. False only for deletions
    /// that must work without the pending writes.
    pub includes_pending: bool,
}

impl Batch {
    /// Returns whether this is one operation that cannot be part of a transaction.
    pub fn runs_outside_transaction(&self) -> bool {
        matches!(self.operations.as_slice(), [only] if only.work.runs_outside_transaction())
    }

    /// Divides the batch. The second half comes first, because the batches go on a stack.
    pub fn halves(mut self) -> impl Iterator<Item = Self> {
        let second = self.operations.split_off(self.operations.len().div_ceil(2));
        let includes_pending = self.includes_pending;
        [second, self.operations]
            .into_iter()
            .filter(|half| !half.is_empty())
            .map(move |operations| Self {
                operations,
                includes_pending,
            })
    }
}

impl Work {
    fn runs_outside_transaction(&self) -> bool {
        matches!(
            self,
            Self::IncrementalVacuum { .. } | Self::TruncateWal | Self::Close
        )
    }
}

/// Divides queued operations into batches, in order.
pub(super) fn split(queued: &mut Vec<Operation>) -> Vec<Vec<Operation>> {
    let mut batches = Vec::new();
    let mut batch: Vec<Operation> = Vec::new();
    let mut bytes = 0;
    for operation in queued.drain(..) {
        let size = operation.work.size_bytes();
        let is_alone = operation.work.runs_outside_transaction();
        let is_full = batch.len() >= MAX_BATCH_OPERATIONS || bytes + size > MAX_BATCH_BYTES;
        if !batch.is_empty() && (is_alone || is_full) {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
        batch.push(operation);
        if is_alone {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}
