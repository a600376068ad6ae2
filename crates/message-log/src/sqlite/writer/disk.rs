//! The writer on a full disk: it truncates the write-ahead log, releases the reserve for outcomes
//! of accepted messages, and refuses new messages until the reserve is back.

use std::time::Duration;

use super::Writer;
use crate::sqlite::inbox::Operation;
use crate::sqlite::operation::Work;
use crate::sqlite::statements::Statements;

/// Length of the write-ahead log at which it is truncated while the reserve is released.
const MAX_WAL_BYTES_ON_FULL_DISK: u64 = 1 << 20;

impl Writer {
    /// Refuses new messages while the reserve is released, and returns the other operations.
    pub(super) fn admit(&self, operations: Vec<Operation>) -> Vec<Operation> {
        if self.reserve.try_restore() {
            return operations;
        }
        let (refused, rest): (Vec<_>, Vec<_>) = operations.into_iter().partition(|operation| {
            operation.work.brings_messages() || matches!(operation.work, Work::Probe)
        });
        self.refuse(refused, &self.watch.disk_full_error());
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

    /// Checkpoints and truncates the write-ahead log without waiting for locks. Returns whether the
    /// disk has room then.
    fn truncate_wal(&self, statements: &Statements<'_>) -> bool {
        let conn = statements.conn();
        let truncated = conn
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.checkpoints.truncate(conn));
        if let Err(error) = truncated {
            self.checkpoints.sync_failures().note(&error);
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
