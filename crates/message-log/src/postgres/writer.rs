//! The writers of groups. What is queued becomes one transaction; while that is written, the next
//! one gathers, as `group_commit` says. Nobody is answered before the commit.
//!
//! Operations of one queue may be written at the same time by several writers, and then have no
//! order among each other; the queue of what locks keys has one writer, which keeps it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kanat_database::Session;
use sqlx::Connection;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::failure::{FailureKind, is_silence, outward};
use super::group_commit::{self, GroupCommitQueue};
use super::in_doubt::{InDoubtOperation, InDoubtTransaction};
use super::operation::{Effect, Operation, ReplyGuard};
use super::options::Connections;
use super::shared::{LogState, Notification};
use super::transaction::{self, TransactionError, TransactionRef};
use crate::change::Change;
use crate::{Error, Result};

/// Most keys that one transaction locks. The database has a lock table of a fixed size.
const MAX_BATCH_KEYS: usize = 256;
/// Most bytes of bodies in one transaction, so that it does not take too long. A single larger
/// operation is written alone.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// Attempts at a transaction that others are in the way of.
const MAX_ATTEMPTS: u32 = 4;
/// Longest time for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed connection before another one is opened.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Writer {
    pub queue: Arc<GroupCommitQueue>,
    pub queued_bytes: Arc<AtomicUsize>,
    pub context: Arc<Context>,
    pub connection: Connector,
}

/// State that all writers share.
pub(super) struct Context {
    pub connecting: Connections,
    pub shared: Arc<LogState>,
    pub closing: CancellationToken,
    pub in_doubt: mpsc::UnboundedSender<InDoubtTransaction>,
    /// Changes that release leases whose callers went away before they got them.
    pub releases: mpsc::UnboundedSender<Change>,
}

/// The connection of one writer, which is opened again when it is lost.
#[derive(Default)]
pub(super) struct Connector {
    session: Option<Session>,
    failed: Option<(Instant, Error)>,
}

impl Writer {
    /// Writes until the log is closed and the queue empty.
    pub async fn run(mut self) {
        let mut queued = Vec::with_capacity(group_commit::MAX_GROUP);
        while let Some(_in_flight) = self.queue.next(&mut queued).await {
            for batch in batches(&mut queued) {
                self.write(batch).await;
            }
        }
        self.connection.close().await;
    }

    async fn write(&mut self, batch: Vec<Operation>) {
        let mut pending = vec![(batch, 1)];
        while let Some((batch, attempt)) = pending.pop() {
            let connecting = &self.context.connecting;
            let session = match self.connection.get(connecting).await {
                Ok(session) => session,
                Err(error) => {
                    self.refuse(batch, &error);
                    continue;
                }
            };
            match transaction::run(session, connecting.space, &batch).await {
                Ok(effects) => self.committed(batch, effects),
                Err(TransactionError::InDoubt {
                    transaction,
                    effects,
                }) => {
                    self.connection.lost();
                    self.resolve_later(batch, transaction, effects);
                }
                Err(TransactionError::Aborted(error)) => {
                    if FailureKind::from_error(&error) == FailureKind::Broken
                        || !transaction::roll_back(session).await
                    {
                        self.connection.lost();
                    }
                    // Until now it held back the events of others.
                    self.context.shared.publish(Notification::Events);
                    self.aborted(batch, attempt, error, &mut pending);
                }
            }
        }
    }

    fn committed(&self, batch: Vec<Operation>, effects: Vec<Effect>) {
        let shared = &self.context.shared;
        shared.progress.count_commit(&effects);
        let makes_claimable = batch
            .iter()
            .zip(&effects)
            .any(|(operation, effect)| operation.work.makes_claimable(effect));
        shared.publish(if makes_claimable {
            Notification::Claimable
        } else {
            Notification::Events
        });
        for (operation, effect) in batch.into_iter().zip(effects) {
            self.answer(operation, Ok(effect));
        }
    }

    /// Refuses operations that cannot be written, and puts the rest into `pending`.
    fn aborted(
        &self,
        batch: Vec<Operation>,
        attempt: u32,
        error: sqlx::Error,
        pending: &mut Vec<(Vec<Operation>, u32)>,
    ) {
        match FailureKind::from_error(&error) {
            FailureKind::Contended if attempt < MAX_ATTEMPTS => pending.push((batch, attempt + 1)),
            // The server, or something on the way to it, may have ended the session while it was
            // idle.
            FailureKind::Broken if attempt == 1 && !is_silence(&error) => {
                pending.push((batch, attempt + 1))
            }
            FailureKind::NoRoom => {
                tracing::error!(
                    error = %error,
                    operations = batch.len(),
                    "the message log has no room on its disk",
                );
                let (appends, rest): (Vec<_>, Vec<_>) = batch
                    .into_iter()
                    .partition(|operation| operation.work.brings_messages());
                // What is accepted already must get on, and retention makes room: it is tried
                // without the appends.
                let retry = !appends.is_empty() && !rest.is_empty();
                let full = outward(error);
                self.refuse(appends, &full);
                if retry {
                    pending.push((rest, attempt));
                } else {
                    self.refuse(rest, &full);
                }
            }
            FailureKind::Contended | FailureKind::Away | FailureKind::Broken => {
                tracing::error!(
                    error = %error,
                    operations = batch.len(),
                    "the message log cannot be written",
                );
                self.refuse(batch, &Error::Unavailable(error.to_string()));
            }
            FailureKind::Operation if batch.len() > 1 => {
                pending.extend(halves(batch).map(|half| (half, 1)))
            }
            FailureKind::Operation => {
                tracing::error!(error = %error, "the message log refused an operation");
                self.refuse(batch, &Error::Other(error.to_string()));
            }
        }
    }

    fn resolve_later(
        &self,
        batch: Vec<Operation>,
        transaction: TransactionRef,
        effects: Vec<Effect>,
    ) {
        let operations = batch.into_iter().zip(effects).map(|(operation, effect)| {
            self.queued_bytes
                .fetch_sub(operation.work.size_bytes(), Ordering::Relaxed);
            InDoubtOperation {
                reply: Some(operation.reply),
                effect,
            }
        });
        let in_doubt = InDoubtTransaction::new(transaction, operations.collect());
        // Fails only when the log is closed, and then the callers learn that.
        let _ = self.context.in_doubt.send(in_doubt);
    }

    fn refuse(&self, batch: Vec<Operation>, error: &Error) {
        for operation in batch {
            self.answer(operation, Err(error.clone()));
        }
    }

    fn answer(&self, operation: Operation, result: Result<Effect>) {
        self.queued_bytes
            .fetch_sub(operation.work.size_bytes(), Ordering::Relaxed);
        // A caller that has gone drops the answer, which gives back the leases in it.
        let _ = operation
            .reply
            .send(ReplyGuard::new(result, self.context.releases.clone()));
    }
}

impl Connector {
    pub fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            failed: None,
        }
    }

    /// Returns the session, made anew when it was lost or its server is not the primary any more.
    async fn get(&mut self, connecting: &Connections) -> Result<&mut Session> {
        if self
            .session
            .as_ref()
            .is_some_and(|session| !session.patience.is_in_place())
        {
            self.lost();
        }
        if self.session.is_none() {
            if let Some((at, error)) = &self.failed
                && at.elapsed() < RECONNECT_PAUSE
            {
                return Err(error.clone());
            }
            match connecting.session().await {
                Ok(session) => self.session = Some(session),
                Err(error) => {
                    tracing::error!(error = %error, "the message log cannot be reached");
                    let error = Error::Unavailable(error.to_string());
                    self.failed = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
        }
        self.session
            .as_mut()
            .ok_or_else(|| Error::Unavailable("there is no connection".to_owned()))
    }

    fn lost(&mut self) {
        self.session = None;
    }

    async fn close(self) {
        if let Some(Session { connection, .. }) = self.session {
            // Nothing is left to write on it.
            let _ = timeout(CLOSE_TIMEOUT, connection.close()).await;
        }
    }
}

/// Divides queued operations into transactions, in order.
fn batches(queued: &mut Vec<Operation>) -> Vec<Vec<Operation>> {
    let mut batches = Vec::new();
    let mut batch: Vec<Operation> = Vec::new();
    let mut bytes = 0;
    let mut keys = 0;
    for operation in queued.drain(..) {
        let more_bytes = operation.work.size_bytes();
        let more_keys = operation.work.keys();
        if !batch.is_empty()
            && (bytes + more_bytes > MAX_BATCH_BYTES || keys + more_keys > MAX_BATCH_KEYS)
        {
            batches.push(std::mem::take(&mut batch));
            (bytes, keys) = (0, 0);
        }
        bytes += more_bytes;
        keys += more_keys;
        batch.push(operation);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// Returns the halves of a batch, the second one first: the last of a stack is written next.
fn halves(mut batch: Vec<Operation>) -> impl Iterator<Item = Vec<Operation>> {
    let second = batch.split_off(batch.len().div_ceil(2));
    [second, batch].into_iter().filter(|half| !half.is_empty())
}
