//! The writer's use of the journal (`sqlite/journal.rs`): appending to it, and applying its pending
//! writes to the tables.
//!
//! A flush is a commit without operations: `commit_batch` and `publish` of `writer.rs` do the work.
//! Readers that wait for one are in `flush_requests`. `flush` answers them with its result. A
//! transaction that fails because the tables are unavailable (`handle_failure`), and a lost file
//! (`refuse_all_but_close`), answer them with an error.

use std::time::Instant;

use super::{Batch, CommittedBatch, Writer};
use crate::sqlite::inbox::Operation;
use crate::sqlite::journal::{JournalOutcome, JournalWrite};
use crate::sqlite::operation::Effect;
use crate::sqlite::options::CommitDurability;
use crate::sqlite::statements::Statements;
use crate::{Error, Result};

impl Writer {
    /// Appends the operations to the journal and answers their callers. Returns the operations that
    /// have to go to the tables; refuses them when neither has room.
    pub(super) fn append_to_journal(
        &mut self,
        statements: &Statements<'_>,
        operations: Vec<Operation>,
    ) -> Option<Vec<Operation>> {
        let mut outcome = self.journal.append(statements, &operations, self.last_seq);
        if matches!(outcome, Ok(JournalOutcome::FlushFirst)) {
            if let Err(error) = self.flush_unless_backing_off(statements) {
                self.refuse(operations, &error);
                return None;
            }
            outcome = self.journal.append(statements, &operations, self.last_seq);
        }
        // If the append met an error of the tables, the transaction will meet and report it.
        let Ok(JournalOutcome::Written(write)) = outcome else {
            return Some(operations);
        };
        let JournalWrite { results, last_seq } = write;
        self.last_seq = last_seq;
        if let Err(lost) = self.files.check() {
            self.refuse(operations, &lost);
            return None;
        }
        if results.iter().any(|result| result.seq.is_some()) {
            self.state
                .journaled(results.iter().map(|result| &result.effect));
        }
        for (Operation { work, reply }, result) in operations.into_iter().zip(results) {
            self.inbox.release_bytes(&work);
            self.journal.add_pending(work, result.seq);
            self.reply(reply, Ok(result.effect));
        }
        None
    }

    /// Flushes to make room in the journal. Fails at once shortly after an attempt that failed,
    /// because each attempt delays all callers.
    fn flush_unless_backing_off(&mut self, statements: &Statements<'_>) -> Result<()> {
        if !self.journal.reader_retry_delay(Instant::now()).is_zero() {
            return Err(not_applied());
        }
        self.flush(statements, self.ack_durability)
    }

    /// Flushes if readers wait, but not shortly after a failed attempt. Then they wait for the next
    /// attempt, and get its result also if another caller caused it.
    pub(super) fn flush_for_readers(&mut self, statements: &Statements<'_>) {
        let is_allowed = self.journal.reader_retry_delay(Instant::now()).is_zero();
        if !self.flush_requests.is_empty() && is_allowed {
            // The readers get the result.
            let _ = self.flush(statements, CommitDurability::Deferred);
        }
    }

    /// Applies the pending writes to the tables, and answers the readers.
    pub(super) fn flush(
        &mut self,
        statements: &Statements<'_>,
        durability: CommitDurability,
    ) -> Result<()> {
        let result = if self.journal.pending().is_empty() {
            Ok(())
        } else {
            self.apply_pending(statements, durability)
        };
        self.answer_readers(&result);
        result
    }

    fn apply_pending(
        &mut self,
        statements: &Statements<'_>,
        durability: CommitDurability,
    ) -> Result<()> {
        // Without a journal only the tables have the writes on disk.
        let is_in_journal = self.journal.is_active() && self.files.check().is_ok();
        let durability = if is_in_journal {
            durability
        } else {
            self.ack_durability
        };
        let batch = Batch {
            operations: Vec::new(),
            includes_pending: true,
        };
        let mut result = self.commit_batch(statements, &batch, durability);
        while let Err(error) = &result
            && self.make_room(statements, error)
        {
            result = self.commit_batch(statements, &batch, durability);
        }
        match result {
            Ok(CommittedBatch { durability, .. }) => {
                self.publish(statements, &[], &[], durability);
                Ok(())
            }
            Err(error) => {
                let is_due = self.journal.note_apply_failure(Instant::now());
                // Attempts that readers ask for in between would repeat the line.
                if is_due {
                    tracing::error!(
                        %error,
                        "acknowledged operations stay in the journal: the message log's tables \
                         do not take them",
                    );
                }
                Err(not_applied())
            }
        }
    }

    pub(super) fn answer_readers(&mut self, result: &Result<()>) {
        for reader in std::mem::take(&mut self.flush_requests) {
            self.answer(reader, result.clone().map(|()| Effect::Done));
        }
    }
}

pub(super) fn not_applied() -> Error {
    Error::Unavailable(
        "the operations that were acknowledged last cannot be written to its tables".to_owned(),
    )
}
