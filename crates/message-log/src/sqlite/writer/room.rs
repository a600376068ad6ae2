//! What the writer does for room on a full disk: it empties the write-ahead log, gives the reserve
//! to the outcomes of what was accepted, and refuses new messages until the reserve is back.

use std::time::Duration;

use super::Writer;
use crate::sqlite::files::Watch;
use crate::sqlite::operation::{Operation, Work};
use crate::sqlite::reserve::Reserve;
use crate::sqlite::statements::Statements;

/// Length of the write-ahead log at which it is emptied while the reserve is given.
const LOG_BYTES_ON_A_FULL_DISK: u64 = 1 << 20;

/// What tells of the disk.
pub(in super::super) struct Room {
    pub watch: Watch,
    pub reserve: Reserve,
}

impl Writer {
    /// Refuses what brings messages while the reserve is given to what became of others.
    pub(super) fn let_in(&self, operations: Vec<Operation>) -> Vec<Operation> {
        if self.reserve.lets_in() {
            return operations;
        }
        let brings = |operation: &Operation| {
            operation.work.brings_messages() || matches!(operation.work, Work::Probe)
        };
        let (refused, rest): (Vec<_>, Vec<_>) = operations.into_iter().partition(brings);
        self.refuse(refused, &self.watch.disk_is_full());
        rest
    }

    /// Makes room on a full disk: the write-ahead log goes into its file, or the reserve is given.
    /// Returns whether it is worth another try.
    pub(super) fn makes_room(
        &mut self,
        statements: &Statements<'_>,
        error: &rusqlite::Error,
    ) -> bool {
        if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DiskFull)
            || !self.reserve.is_disk_full()
        {
            return false;
        }
        let was_emptied = std::mem::replace(&mut self.is_emptied, true);
        if !was_emptied && self.empties_log(statements) {
            return true;
        }
        let is_given = self.reserve.give();
        if is_given {
            self.empties_log(statements);
        }
        is_given
    }

    /// Moves the write-ahead log into its file, and returns whether the disk has room then. Nobody
    /// is waited for.
    fn empties_log(&self, statements: &Statements<'_>) -> bool {
        let conn = statements.conn();
        let emptied = conn
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.checkpoints.truncate(conn).map(|_| ()));
        if let Err(error) = emptied {
            self.checkpoints.syncs().note(&error);
            return false;
        }
        !self.reserve.is_disk_full()
    }

    /// After a commit, moves what the write-ahead log holds when there is enough of it. On a full
    /// disk that is soon: what is in the write-ahead log takes many times the room that it takes in
    /// the file.
    pub(super) fn moves_on(&self, statements: &Statements<'_>) {
        if self.reserve.is_given() && self.checkpoints.length_bytes() >= LOG_BYTES_ON_A_FULL_DISK {
            self.empties_log(statements);
        } else {
            self.checkpoints.committed(statements.conn());
        }
    }
}
