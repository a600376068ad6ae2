//! The writer on a full or failed disk: it truncates the write-ahead log, releases the reserve for
//! outcomes of accepted messages, and refuses new messages until the reserve is back.

use super::Writer;
use super::batch::Batch;
use crate::sqlite::failure;
use crate::sqlite::inbox::Operation;
use crate::sqlite::operation::Work;
use crate::sqlite::statements::Statements;

/// Length of the write-ahead log at which it is truncated while the reserve is released.
const MAX_WAL_BYTES_ON_FULL_DISK: u64 = 1 << 20;

/// Division of a batch that met a full or failed disk.
struct BatchDivision {
    refused: Vec<Operation>,
    /// Batches for the stack of the writer, the last one first.
    retries: Vec<Batch>,
}

impl Writer {
    /// Refuses new messages while the reserve is released, and returns the other operations.
    pub(super) fn admit(&self, operations: Vec<Operation>) -> Vec<Operation> {
        if self.reserve.ensure_available() {
            return operations;
        }
        let (refused, rest): (Vec<_>, Vec<_>) = operations.into_iter().partition(|operation| {
            operation.work.brings_messages() || matches!(operation.work, Work::Probe)
        });
        self.refuse(refused, &failure::disk_full(self.files.folder()));
        rest
    }

    /// Makes room on a full disk: truncates the write-ahead log, or else releases the reserve.
    /// Returns whether another attempt is worthwhile.
    pub(super) fn make_room(
        &mut self,
        statements: &Statements<'_>,
        error: &rusqlite::Error,
    ) -> bool {
        if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DiskFull)
            || !self.reserve.is_disk_full()
        {
            return false;
        }
        let was_truncated = std::mem::replace(&mut self.is_wal_truncated, true);
        if !was_truncated && self.truncate_wal(statements) {
            return true;
        }
        let is_released = self.reserve.release();
        if is_released {
            self.truncate_wal(statements);
        }
        is_released
    }

    /// Handles a batch that met a full or failed disk when no room can be made. Refuses new
    /// messages, and tries the other operations without them, because accepted messages must go
    /// on. A single operation is refused. A deletion that failed together with the pending writes
    /// is tried once more without them before it is refused: it makes the room that they need.
    pub(super) fn refuse_after_disk_fault(
        &self,
        batch: Batch,
        error: &rusqlite::Error,
        stack: &mut Vec<Batch>,
    ) {
        let BatchDivision { refused, retries } = BatchDivision::after_disk_fault(batch);
        let refusal = self.write_failures.log(error, refused.len());
        self.refuse(refused, &refusal);
        stack.extend(retries);
    }

    /// Checkpoints and truncates the write-ahead log without waiting for locks. Returns whether the
    /// disk has room then.
    fn truncate_wal(&self, statements: &Statements<'_>) -> bool {
        if let Err(error) = self.checkpoints.truncate_wal(statements.conn()) {
            self.checkpoints
                .sync_failures()
                .record_if_fsync_error(&error);
            return false;
        }
        !self.reserve.is_disk_full()
    }

    /// Checkpoints the write-ahead log after a commit if it is long. While the reserve is released,
    /// truncates it from 1 MiB on, because its content takes far less room in the main file.
    pub(super) fn checkpoint_if_due(&self, statements: &Statements<'_>) {
        if self.reserve.is_released()
            && self.checkpoints.length_bytes() >= MAX_WAL_BYTES_ON_FULL_DISK
        {
            self.truncate_wal(statements);
        } else {
            self.checkpoints.after_commit(statements.conn());
        }
    }
}

impl BatchDivision {
    fn after_disk_fault(batch: Batch) -> Self {
        let Batch {
            operations,
            includes_pending,
        } = batch;
        let (appends, rest): (Vec<_>, Vec<_>) = operations
            .into_iter()
            .partition(|operation| operation.work.brings_messages());
        match rest.as_slice() {
            [only] if appends.is_empty() => {
                if includes_pending && only.work.is_deletion() {
                    let without_pending = Batch {
                        operations: rest,
                        includes_pending: false,
                    };
                    Self {
                        refused: Vec::new(),
                        retries: vec![without_pending],
                    }
                } else {
                    Self {
                        refused: rest,
                        retries: Vec::new(),
                    }
                }
            }
            _ => {
                let rest = Batch {
                    operations: rest,
                    includes_pending,
                };
                Self {
                    refused: appends,
                    retries: rest.halves().collect(),
                }
            }
        }
    }
}

impl Work {
    fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendAttempted(_))
    }

    fn is_deletion(&self) -> bool {
        matches!(self, Self::Task(task) if task.is_deletion())
    }
}

#[cfg(test)]
mod tests {
    use kanat_model::id::FlowId;

    use super::*;
    use crate::contract::message;
    use crate::sqlite::operation::{Effect, Task};

    fn append() -> Work {
        Work::Append(Box::new(message(&FlowId::generate())))
    }

    fn deletion() -> Work {
        Task::new(|_| Ok(Effect::Affected(0)))
            .deleting_rows()
            .into()
    }

    /// Divides a batch. Returns the number of refused operations, and for each retry its number of
    /// operations and whether it includes the pending writes.
    fn divide(
        work: impl IntoIterator<Item = Work>,
        includes_pending: bool,
    ) -> (usize, Vec<(usize, bool)>) {
        let operations = work
            .into_iter()
            .map(|work| Operation { work, reply: None })
            .collect();
        let BatchDivision { refused, retries } = BatchDivision::after_disk_fault(Batch {
            operations,
            includes_pending,
        });
        let retries = retries
            .iter()
            .map(|retry| (retry.operations.len(), retry.includes_pending))
            .collect();
        (refused.len(), retries)
    }

    #[test]
    fn refuses_appends_and_retries_the_other_operations_in_halves() {
        let work = [append(), Work::Probe, append(), Work::Probe];
        assert_eq!(divide(work, true), (2, vec![(1, true), (1, true)]));
    }

    #[test]
    fn refuses_nothing_of_several_operations_without_appends() {
        let work = [Work::Probe, Work::Probe, Work::Probe];
        assert_eq!(divide(work, true), (0, vec![(1, true), (2, true)]));
    }

    #[test]
    fn refuses_a_single_operation() {
        assert_eq!(divide([Work::Probe], true), (1, vec![]));
        assert_eq!(divide([append()], true), (1, vec![]));
    }

    #[test]
    fn retries_a_deletion_without_the_pending_writes_before_it_is_refused() {
        assert_eq!(divide([deletion()], true), (0, vec![(1, false)]));
        assert_eq!(divide([deletion()], false), (1, vec![]));
    }
}
