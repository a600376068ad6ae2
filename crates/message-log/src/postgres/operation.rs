//! Operations of the writers, and their answers.

use tokio::sync::{mpsc, oneshot};

use crate::attempted::AttemptedRow;
use crate::change::Change;
use crate::effect::ReleaseSink;
use crate::{AppendOutcome, ClaimedMessage, NewMessage, StepCheckpoint};

pub(super) type ReplySender = oneshot::Sender<ReplyGuard>;

/// An operation, which becomes part of a transaction.
pub(super) struct Operation {
    pub work: Work,
    pub reply: ReplySender,
}

pub(super) enum Work {
    Append(Box<NewMessage>),
    AppendAttempted(Vec<AttemptedRow>),
    Checkpoint(Box<StepCheckpoint>),
    Settle(Box<Change>),
}

pub(super) type Effect = crate::effect::Effect<ClaimedMessage>;

pub(super) type ReplyGuard =
    crate::effect::ReplyGuard<ClaimedMessage, mpsc::UnboundedSender<Change>>;

impl ReleaseSink for mpsc::UnboundedSender<Change> {
    fn release(&self, change: Change) {
        // Fails only when the log is closed, and then the lease ends with its node.
        let _ = self.send(change);
    }
}

impl Work {
    /// Returns the approximate number of bytes that it has in memory.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Append(message) => message.size_bytes(),
            Self::AppendAttempted(rows) => rows.iter().map(AttemptedRow::size_bytes).sum(),
            Self::Checkpoint(checkpoint) => checkpoint.output.len(),
            Self::Settle(change) => change.size_bytes(),
        }
    }

    pub fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendAttempted(_))
    }

    /// Returns the number of keys that have to be locked for it. An operation without keys may be
    /// written beside any other.
    pub fn keys(&self) -> usize {
        match self {
            Self::Append(message) => {
                message.dedupe_keys.len() + usize::from(message.ordering_key.is_some())
            }
            Self::Settle(change) => usize::from(change.releases_ordering_key()),
            Self::AppendAttempted(_) | Self::Checkpoint(_) => 0,
        }
    }

    /// Returns the most events that it writes.
    pub fn events(&self) -> usize {
        match self {
            Self::Append(_) | Self::Settle(_) => 1,
            Self::AppendAttempted(rows) => 2 * rows.len(),
            Self::Checkpoint(_) => 0,
        }
    }

    /// Returns whether a message may have become claimable.
    pub fn makes_claimable(&self, effect: &Effect) -> bool {
        match self {
            Self::Append(_) => matches!(effect, Effect::Appended(AppendOutcome::Waiting)),
            Self::AppendAttempted(rows) => !rows.iter().all(AttemptedRow::is_final),
            // The next of its key may be due now.
            Self::Settle(change) => !change.is_final_without_ordering_key(),
            Self::Checkpoint(_) => false,
        }
    }
}
