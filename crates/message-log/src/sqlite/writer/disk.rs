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
        let Batch {
            operations,
            includes_pending,
        } = batch;
        let (appends, rest): (Vec<_>, Vec<_>) = operations
            .into_iter()
            .partition(|operation| operation.work.brings_messages());
        let is_single = appends.is_empty() && rest.len() == 1;
        let refused = if is_single { 1 } else { appends.len() };
        let refusal = self.write_failures.log(error, refused);
        self.refuse(appends, &refusal);
        if !is_single {
            let rest = Batch {
                operations: rest,
                includes_pending,
            };
            return stack.extend(rest.halves());
        }
        let (deletions, rest): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|operation| includes_pending && operation.work.is_deletion());
        self.refuse(rest, &refusal);
        if !deletions.is_empty() {
            stack.push(Batch {
                operations: deletions,
                includes_pending: false,
            });
        }
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

impl Work {
    fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendAttempted(_))
    }

    fn is_deletion(&self) -> bool {
        matches!(self, Self::Task(task) if task.is_deletion())
    }
}
