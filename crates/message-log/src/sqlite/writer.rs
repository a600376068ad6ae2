//! The one writer of the file. All that is queued when it turns to its queue becomes one transaction; while that
//! commits, the next one gathers. Nobody is answered before the commit.

use std::sync::Arc;

use rusqlite::Connection;

use super::checkpoint::Checkpoints;
use super::failure::Kind;
use super::inbox::Inbox;
use super::operation::{Answer, Effect, Operation, Work};
use super::shared::Shared;
use super::statements::Statements;
use super::{maintenance, transaction};
use crate::Error;

/// Most operations of one transaction.
const BATCH: usize = 1_024;
/// Most bytes of bodies in one transaction, so that one does not take too long; a single larger one is taken whole.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct Writer {
    checkpoints: Checkpoints,
    inbox: Arc<Inbox>,
    shared: Arc<Shared>,
    last_seq: i64,
}

impl Writer {
    pub fn new(checkpoints: Checkpoints, inbox: Arc<Inbox>, shared: Arc<Shared>) -> Self {
        let last_seq = shared.last_event();
        Self { checkpoints, inbox, shared, last_seq }
    }

    /// Writes until the inbox is closed and empty, on the thread that calls it; then closes the file.
    pub fn run(mut self, conn: Connection) {
        self.write_all(&Statements::new(&conn));
        maintenance::finish(conn);
    }

    fn write_all(&mut self, statements: &Statements<'_>) {
        let mut queued = Vec::new();
        loop {
            self.inbox.take(&mut queued);
            if queued.is_empty() {
                break;
            }
            for batch in batches(&mut queued) {
                self.write(statements, batch);
                self.checkpoints.committed(statements.conn());
            }
        }
    }

    fn write(&mut self, statements: &Statements<'_>, batch: Vec<Operation>) {
        let mut pending = vec![batch];
        while let Some(mut batch) = pending.pop() {
            if let [operation] = batch.as_slice()
                && operation.work.stands_alone()
            {
                let operation = batch.remove(0);
                self.write_alone(statements.conn(), operation);
                continue;
            }
            let (result, last_seq) = transaction::run(statements, &batch, self.last_seq);
            match result {
                Ok(effects) => {
                    self.last_seq = last_seq;
                    self.shared.committed(last_seq, &batch, &effects);
                    for (operation, effect) in batch.into_iter().zip(effects) {
                        self.answer(operation, Ok(effect));
                    }
                }
                Err(error) => self.failed(batch, error, &mut pending),
            }
        }
    }

    /// After a transaction that has been rolled back: refuses what cannot be done, and puts the rest in `pending`.
    fn failed(&self, batch: Vec<Operation>, error: rusqlite::Error, pending: &mut Vec<Vec<Operation>>) {
        match Kind::of(&error) {
            Kind::NoRoom => {
                tracing::error!(error = %error, operations = batch.len(), "the message log has no room on its disk");
                let (appends, rest): (Vec<_>, Vec<_>) =
                    batch.into_iter().partition(|operation| operation.work.brings_messages());
                // What is accepted already must get on, and retention makes room: these are tried without the appends.
                let retry = !appends.is_empty() || rest.len() > 1;
                for operation in appends {
                    self.answer(operation, Err(Error::Full));
                }
                if retry {
                    pending.extend(halves(rest));
                } else {
                    self.refuse(rest, &Error::Unavailable(error.to_string()));
                }
            }
            Kind::Away => {
                tracing::error!(error = %error, operations = batch.len(), "the message log cannot be written");
                self.refuse(batch, &Error::Unavailable(error.to_string()));
            }
            Kind::Operation if batch.len() > 1 => pending.extend(halves(batch)),
            Kind::Operation => {
                tracing::error!(error = %error, "the message log refused an operation");
                self.refuse(batch, &Error::Other(error.to_string()));
            }
        }
    }

    fn write_alone(&self, conn: &Connection, operation: Operation) {
        let result = match operation.work {
            Work::Shrink { pages } => maintenance::shrink(conn, pages),
            Work::Truncate => maintenance::truncate(conn),
            Work::Close => {
                self.inbox.close();
                Ok(Effect::Done)
            }
            _ => Ok(Effect::Done),
        };
        self.answer(operation, result.map_err(Error::from));
    }

    fn refuse(&self, batch: Vec<Operation>, error: &Error) {
        for operation in batch {
            self.answer(operation, Err(error.clone()));
        }
    }

    fn answer(&self, operation: Operation, result: Result<Effect, Error>) {
        self.inbox.answered(&operation.work);
        if let Some((reply, _room)) = operation.reply {
            // A caller that has gone drops the answer, which gives back the leases in it.
            let _ = reply.send(Answer::new(result, Arc::clone(&self.inbox)));
        }
    }
}

impl Work {
    fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendTried(_))
    }

    /// It cannot be part of a transaction.
    fn stands_alone(&self) -> bool {
        matches!(self, Self::Shrink { .. } | Self::Truncate | Self::Close)
    }
}

/// Cuts what was queued into transactions, in order.
fn batches(queued: &mut Vec<Operation>) -> Vec<Vec<Operation>> {
    let mut batches = Vec::new();
    let mut batch: Vec<Operation> = Vec::new();
    let mut bytes = 0;
    for operation in queued.drain(..) {
        let size = operation.work.size_bytes();
        let alone = operation.work.stands_alone();
        if !batch.is_empty() && (alone || batch.len() >= BATCH || bytes + size > BATCH_BYTES) {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += size;
        batch.push(operation);
        if alone {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// The second half first: the last of a stack is the next.
fn halves(mut batch: Vec<Operation>) -> Vec<Vec<Operation>> {
    let second = batch.split_off(batch.len().div_ceil(2));
    [second, batch].into_iter().filter(|half| !half.is_empty()).collect()
}
