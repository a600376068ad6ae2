//! The one writer of the file. It takes all operations that are queued as one group, divides the
//! group into batches, and writes each batch with one sync; the next group gathers meanwhile.
//! With full durability, no caller is answered before its operation is on disk, in the journal or
//! in the tables. With relaxed durability, a caller is answered after a commit that is not synced:
//! such a commit survives a crash of the process, but not a loss of power.

mod batch;
mod disk;
mod journal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use self::batch::Batch;
use super::checkpoint::CheckpointHandle;
use super::execute::{Execution, execute};
use super::failure::FailureKind;
use super::files::{FileCheck, OpenFiles};
use super::inbox::{Inbox, Operation, ReplyGuard, ReplySender, Wakeup};
use super::journal::Journal;
use super::maintenance;
use super::operation::{Effect, Work};
use super::options::{CommitDurability, Durability};
use super::reserve::Reserve;
use super::state::LogState;
use super::statements::Statements;
use super::write_failure_log::WriteFailureLog;
use crate::{Error, Result};

pub(super) struct Writer {
    checkpoints: CheckpointHandle,
    inbox: Arc<Inbox>,
    state: Arc<LogState>,
    journal: Journal,
    files: FileCheck,
    write_failures: WriteFailureLog,
    reserve: Reserve,
    /// True if the write-ahead log was truncated for want of room, and nothing was written since.
    is_wal_truncated: bool,
    /// Requests of readers that wait until the pending writes are applied.
    flush_requests: Vec<Operation>,
    last_seq: i64,
    /// Durability of a commit on which callers wait.
    ack_durability: CommitDurability,
}

/// Committed transaction.
struct CommittedBatch {
    execution: Execution,
    /// Durability of what it wrote into the tables; `None` if it wrote nothing. SQLite does not
    /// sync such a commit, so earlier deferred commits stay unsynced.
    durability: Option<CommitDurability>,
}

impl Writer {
    pub fn new(
        checkpoints: CheckpointHandle,
        inbox: Arc<Inbox>,
        state: Arc<LogState>,
        journal: Journal,
        files: OpenFiles,
        reserve: Reserve,
        durability: Durability,
    ) -> Self {
        let last_seq = state.last_seq().max(journal.pending().last_seq());
        if !journal.pending().is_empty() {
            state.set_pending();
        }
        Self {
            checkpoints,
            inbox,
            state,
            journal,
            write_failures: WriteFailureLog::new(files.folder().to_owned()),
            files: FileCheck::new(files),
            reserve,
            is_wal_truncated: false,
            flush_requests: Vec::new(),
            last_seq,
            ack_durability: durability.ack_durability(),
        }
    }

    /// Writes until the inbox is closed and empty, on the calling thread; then closes the file.
    /// Profiles find the thread by the name of this function.
    #[inline(never)]
    pub fn run(mut self, conn: Connection) {
        self.run_loop(&Statements::new(&conn));
        maintenance::finish(conn, self.checkpoints.sync_failures());
        self.journal.close();
    }

    fn run_loop(&mut self, statements: &Statements<'_>) {
        let mut queued = Vec::new();
        loop {
            let idle_timeout = self.idle_timeout(Instant::now());
            match self.inbox.take(&mut queued, idle_timeout) {
                Wakeup::Operations => {}
                Wakeup::TimedOut => {
                    // Readers hear of the failure, and the journal schedules the next attempt.
                    let _ = self.flush(statements, CommitDurability::Deferred);
                    continue;
                }
                Wakeup::Closed => break,
            }
            for batch in batch::split(&mut queued) {
                self.process_batch(statements, batch);
            }
        }
        self.journal.prepare_to_close();
        let _ = self.flush(statements, self.ack_durability);
    }

    /// Returns how long the writer sleeps when no operation arrives; `None` for no limit.
    fn idle_timeout(&self, now: Instant) -> Option<Duration> {
        if self.flush_requests.is_empty() {
            self.journal.idle_timeout(now)
        } else {
            Some(self.journal.reader_retry_delay(now))
        }
    }

    fn process_batch(&mut self, statements: &Statements<'_>, operations: Vec<Operation>) {
        if let Err(lost) = self.files.check() {
            return self.refuse_all_but_close(statements, operations, &lost);
        }
        let (readers, operations): (Vec<_>, Vec<_>) = operations
            .into_iter()
            .partition(|operation| matches!(operation.work, Work::Flush));
        self.flush_requests.extend(readers);
        let operations = self.admit(operations);
        if !operations.is_empty() {
            self.commit_operations(statements, operations);
        }
        self.flush_for_readers(statements);
    }

    /// Refuses everything but the close, because the next start would not find what is written now.
    fn refuse_all_but_close(
        &mut self,
        statements: &Statements<'_>,
        operations: Vec<Operation>,
        lost: &Error,
    ) {
        let (closes, operations): (Vec<_>, Vec<_>) = operations
            .into_iter()
            .partition(|operation| matches!(operation.work, Work::Close));
        self.refuse(operations, lost);
        self.answer_readers(&Err(journal::not_applied()));
        for close in closes {
            self.run_outside_transaction(statements.conn(), close);
        }
    }

    fn commit_operations(&mut self, statements: &Statements<'_>, operations: Vec<Operation>) {
        let Some(operations) = self.append_to_journal(statements, operations) else {
            if self.journal.is_due(Instant::now()) {
                let _ = self.flush(statements, CommitDurability::Deferred);
            }
            return;
        };
        let mut stack = vec![Batch {
            operations,
            includes_pending: true,
        }];
        while let Some(batch) = stack.pop() {
            if batch.runs_outside_transaction() {
                for operation in batch.operations {
                    self.run_outside_transaction(statements.conn(), operation);
                }
            } else {
                self.transact(statements, batch, &mut stack);
            }
        }
    }

    /// Commits a batch and answers its callers. What has to be tried again goes on the stack.
    fn transact(&mut self, statements: &Statements<'_>, batch: Batch, stack: &mut Vec<Batch>) {
        let CommittedBatch {
            execution,
            durability,
        } = match self.commit_batch(statements, &batch, self.ack_durability) {
            Ok(committed) => committed,
            Err(error) => return self.handle_failure(statements, batch, error, stack),
        };
        let Batch {
            operations,
            includes_pending,
        } = batch;
        let Execution { effects, last_seq } = execution;
        self.last_seq = last_seq;
        if let Err(lost) = self.files.check() {
            if includes_pending {
                self.journal.note_applied(durability);
            }
            return self.refuse(operations, &lost);
        }
        if includes_pending {
            self.publish(statements, &operations, &effects, durability);
        } else {
            self.state.committed_without_pending(&effects);
            self.checkpoint_if_due(statements);
        }
        for (operation, effect) in operations.into_iter().zip(effects) {
            self.answer(operation, Ok(effect));
        }
    }

    fn commit_batch(
        &mut self,
        statements: &Statements<'_>,
        batch: &Batch,
        durability: CommitDurability,
    ) -> rusqlite::Result<CommittedBatch> {
        let conn = statements.conn();
        conn.busy_timeout(self.journal.lock_timeout())?;
        self.checkpoints.recover_after_failed_sync(conn)?;
        let pending = batch.includes_pending.then(|| self.journal.pending());
        let run = || {
            execute(
                statements,
                pending,
                &batch.operations,
                self.last_seq,
                durability,
            )
        };
        let (result, wrote) = self.checkpoints.track_writes(run);
        let execution = result.inspect_err(|error| {
            self.checkpoints
                .sync_failures()
                .record_if_fsync_error(error)
        })?;
        self.is_wal_truncated = false;
        Ok(CommittedBatch {
            execution,
            durability: wrote.then_some(durability),
        })
    }

    /// Publishes a commit that applied the pending writes.
    fn publish(
        &mut self,
        statements: &Statements<'_>,
        operations: &[Operation],
        effects: &[Effect],
        durability: Option<CommitDurability>,
    ) {
        let has_claimable = self.journal.pending().has_claimable();
        self.journal.note_applied(durability);
        self.state.committed(self.last_seq, effects);
        let mut done = operations.iter().zip(effects);
        if has_claimable || done.any(|(operation, effect)| operation.work.makes_claimable(effect)) {
            self.state.notify_claimable();
        }
        self.checkpoint_if_due(statements);
    }

    /// Refuses the operations of a batch that cannot be done, and puts the others on the stack. The
    /// transaction of the batch has been rolled back.
    fn handle_failure(
        &mut self,
        statements: &Statements<'_>,
        batch: Batch,
        error: rusqlite::Error,
        stack: &mut Vec<Batch>,
    ) {
        match FailureKind::from_error(&error) {
            FailureKind::DiskFault if self.make_room(statements, &error) => {
                let operations = self.admit(batch.operations);
                if !operations.is_empty() {
                    stack.push(Batch {
                        operations,
                        ..batch
                    });
                }
            }
            FailureKind::DiskFault => self.refuse_after_disk_fault(batch, &error, stack),
            FailureKind::Unavailable => {
                let refusal = self.write_failures.log(&error, batch.operations.len());
                self.journal.note_apply_failure(Instant::now());
                self.answer_readers(&Err(journal::not_applied()));
                self.refuse(batch.operations, &refusal);
            }
            FailureKind::Operation if batch.operations.len() > 1 => stack.extend(batch.halves()),
            // A pending write may have failed, and not this operation.
            FailureKind::Operation
                if !self.journal.pending().is_empty()
                    && self.flush(statements, CommitDurability::Deferred).is_ok() =>
            {
                stack.push(batch);
            }
            FailureKind::Operation => {
                tracing::error!(%error, "the message log refused an operation");
                self.refuse(batch.operations, &Error::Other(error.to_string()));
            }
        }
    }

    fn run_outside_transaction(&self, conn: &Connection, operation: Operation) {
        let result = match operation.work {
            Work::IncrementalVacuum { pages } => maintenance::incremental_vacuum(conn, pages),
            Work::TruncateWal => self.checkpoints.truncate_wal(conn),
            Work::Close => {
                self.inbox.close();
                Ok(Effect::Done)
            }
            _ => Ok(Effect::Done),
        };
        let result = result.inspect_err(|error| {
            self.checkpoints
                .sync_failures()
                .record_if_fsync_error(error)
        });
        self.answer(operation, result.map_err(Error::from));
    }

    fn refuse(&self, operations: Vec<Operation>, error: &Error) {
        for operation in operations {
            self.answer(operation, Err(error.clone()));
        }
    }

    fn answer(&self, operation: Operation, result: Result<Effect>) {
        self.inbox.release_bytes(&operation.work);
        self.reply(operation.reply, result);
    }

    fn reply(&self, reply: Option<ReplySender>, result: Result<Effect>) {
        if let Some(reply) = reply {
            reply.send(ReplyGuard::new(result, Arc::clone(&self.inbox)));
        }
    }
}
