//! Effects of operations on a log, and the replies that return them to callers.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use kanat_model::Timestamp;
use kanat_rate_limit::ExchangeOutcome;
use tokio::sync::watch;

use crate::change::Change;
use crate::{AppendOutcome, Error, Lease, LeasedWriteOutcome, PollClaimOutcome, Result, Stats};

/// Effect of one operation. `C` is a claimed message in the form that the backend returns.
#[derive(Debug)]
pub(crate) enum Effect<C> {
    Appended(AppendOutcome),
    Settled(LeasedWriteOutcome),
    /// Outcome of another write under a lease, or of the renewal of a lease.
    LeasedWrite(LeasedWriteOutcome),
    /// Number of messages that were appended with their first attempts.
    AppendedAttempted(u64),
    Claimed(Vec<C>),
    Polled(PollClaimOutcome),
    Exchanged(ExchangeOutcome),
    Done,
    /// Number of rows that the operation deleted, or of messages that it ended.
    Affected(u64),
    /// The state of the message does not allow the operation.
    Refused(Error),
}

/// Receiver of changes that release messages whose new holder has gone away.
pub(crate) trait ReleaseSink {
    fn release(&self, change: Change);
}

/// Reply to the caller of an operation. If the caller goes away, the reply is dropped before
/// [`into_result`](Self::into_result). It then releases the leases in the result, because no other
/// node could claim these messages while this node lives.
pub(crate) struct ReplyGuard<C: Into<Lease>, S: ReleaseSink> {
    result: Option<Result<Effect<C>>>,
    sink: S,
}

impl<C: Debug> Effect<C> {
    pub fn into_appended(self) -> Result<AppendOutcome> {
        match self {
            Self::Appended(appended) => Ok(appended),
            other => Err(other.unexpected()),
        }
    }

    pub fn into_leased_write(self) -> Result<LeasedWriteOutcome> {
        match self {
            Self::Settled(outcome) | Self::LeasedWrite(outcome) => Ok(outcome),
            other => Err(other.unexpected()),
        }
    }

    pub fn into_claimed(self) -> Result<Vec<C>> {
        match self {
            Self::Claimed(claimed) => Ok(claimed),
            other => Err(other.unexpected()),
        }
    }

    /// Returns the number of messages or rows that the operation appended, ended or deleted.
    pub fn into_count(self) -> Result<u64> {
        match self {
            Self::AppendedAttempted(count) | Self::Affected(count) => Ok(count),
            other => Err(other.unexpected()),
        }
    }

    /// Returns the error for an effect of another kind than the operation has, which no writer
    /// returns.
    pub fn unexpected(&self) -> Error {
        Error::Other(format!("the writer answered {self:?}"))
    }
}

impl<C: Into<Lease>, S: ReleaseSink> ReplyGuard<C, S> {
    pub fn new(result: Result<Effect<C>>, sink: S) -> Self {
        Self {
            result: Some(result),
            sink,
        }
    }

    pub fn into_result(mut self) -> Result<Effect<C>> {
        self.result
            .take()
            .unwrap_or_else(|| Err(Error::Unavailable("the answer was lost".to_owned())))
    }
}

impl<C: Into<Lease>, S: ReleaseSink> Drop for ReplyGuard<C, S> {
    fn drop(&mut self) {
        let Some(Ok(effect)) = self.result.take() else {
            return;
        };
        let now = Timestamp::now();
        let due = Some(Timestamp::steady());
        match effect {
            Effect::Appended(AppendOutcome::Leased(lease)) => {
                self.sink.release(Change::release(lease, now, due));
            }
            Effect::Appended(AppendOutcome::Awaited(lease)) => {
                self.sink.release(Change::release(lease, now, None));
            }
            Effect::Claimed(claimed) => {
                for claimed in claimed {
                    self.sink.release(Change::release(claimed.into(), now, due));
                }
            }
            Effect::Appended(AppendOutcome::Waiting | AppendOutcome::Duplicate(_))
            | Effect::Settled(_)
            | Effect::LeasedWrite(_)
            | Effect::AppendedAttempted(_)
            | Effect::Polled(_)
            | Effect::Exchanged(_)
            | Effect::Done
            | Effect::Affected(_)
            | Effect::Refused(_) => {}
        }
    }
}

/// Counts of a log's writes, and the watches that wake its readers.
#[derive(Default)]
pub(crate) struct Progress {
    changed: watch::Sender<u64>,
    claimable: watch::Sender<u64>,
    commits: AtomicU64,
    operations: AtomicU64,
    appended: AtomicU64,
    settled: AtomicU64,
    claimed: AtomicU64,
}

impl Progress {
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn claimable(&self) -> watch::Receiver<u64> {
        self.claimable.subscribe()
    }

    pub fn notify_changed(&self) {
        increment(&self.changed);
    }

    pub fn notify_claimable(&self) {
        increment(&self.claimable);
    }

    pub fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
            appended: self.appended.load(Ordering::Relaxed),
            settled: self.settled.load(Ordering::Relaxed),
            claimed: self.claimed.load(Ordering::Relaxed),
        }
    }

    /// Counts a commit and the effects of its operations.
    pub fn count_commit<'e, C: 'e>(&self, effects: impl IntoIterator<Item = &'e Effect<C>>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        for effect in effects {
            self.operations.fetch_add(1, Ordering::Relaxed);
            match effect {
                Effect::Appended(
                    AppendOutcome::Leased(_) | AppendOutcome::Waiting | AppendOutcome::Awaited(_),
                ) => {
                    self.appended.fetch_add(1, Ordering::Relaxed);
                }
                Effect::Settled(LeasedWriteOutcome::Done) => {
                    self.settled.fetch_add(1, Ordering::Relaxed);
                }
                Effect::AppendedAttempted(messages) => {
                    self.appended.fetch_add(*messages, Ordering::Relaxed);
                    self.settled.fetch_add(*messages, Ordering::Relaxed);
                }
                Effect::Claimed(claimed) => {
                    self.claimed
                        .fetch_add(claimed.len() as u64, Ordering::Relaxed);
                }
                Effect::Appended(AppendOutcome::Duplicate(_))
                | Effect::Settled(LeasedWriteOutcome::Fenced)
                | Effect::LeasedWrite(_)
                | Effect::Polled(_)
                | Effect::Exchanged(_)
                | Effect::Done
                | Effect::Affected(_)
                | Effect::Refused(_) => {}
            }
        }
    }
}

fn increment(version: &watch::Sender<u64>) {
    version.send_modify(|version| *version = version.wrapping_add(1));
}
