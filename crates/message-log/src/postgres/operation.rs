//! What the writers are asked to do, and what they answer.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, MessageId};
use kanat_model::message::{Failure, Status};
use tokio::sync::{mpsc, oneshot};

use crate::tried::Row;
use crate::{
    Appended, Claimed, Error, Lease, NewMessage, Outcome, Settled, Settlement, StepCheckpoint,
    trace,
};

pub(super) type Reply = oneshot::Sender<Answer>;

/// One thing to do, as part of some transaction.
pub(super) struct Operation {
    pub work: Work,
    pub reply: Reply,
}

pub(super) enum Work {
    Append(Box<NewMessage>),
    AppendTried(Vec<Row>),
    Checkpoint(Box<StepCheckpoint>),
    Settle(Box<Change>),
}

/// A change of state of one message, if it still is as it was when the change was decided.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub message_id: MessageId,
    pub seq: i64,
    pub from_owner: BootId,
    pub from_token: i64,
    pub at: Timestamp,
    pub to_owner: BootId,
    /// `None`: back to where a waiting message stands.
    pub status: Option<Status>,
    /// `None`: as many as before.
    pub attempts: Option<u32>,
    pub due_at: Option<Timestamp>,
    pub error: Problem,
    pub output: Option<Bytes>,
    /// JSON.
    pub trace: Option<String>,
    /// Others may wait behind it.
    pub ordered: bool,
}

/// What happens to the error that a message shows.
#[derive(Debug, Clone)]
pub(super) enum Problem {
    Keep,
    Clear,
    Set(Failure),
}

/// What an operation did.
#[derive(Debug)]
pub(super) enum Effect {
    Appended(Appended),
    Settled(Settled),
    /// So many messages came in with their attempts.
    Tried(u64),
    /// What the claimer now holds.
    Claimed(Vec<Claimed>),
}

/// An effect on its way to its caller. When the caller has gone away meanwhile, the leases in it
/// are given back: else nobody would work on these messages as long as the node lives.
pub(super) struct Answer {
    result: Option<Result<Effect, Error>>,
    abandoned: mpsc::UnboundedSender<Change>,
}

impl Answer {
    pub fn new(result: Result<Effect, Error>, abandoned: mpsc::UnboundedSender<Change>) -> Self {
        Self {
            result: Some(result),
            abandoned,
        }
    }

    pub fn open(mut self) -> Result<Effect, Error> {
        self.result
            .take()
            .unwrap_or_else(|| Err(Error::Unavailable("the answer was lost".to_owned())))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let now = Timestamp::now();
        let due = Timestamp::steady();
        let changes = match self.result.take() {
            Some(Ok(Effect::Appended(Appended::Leased(lease)))) => {
                vec![Change::release(lease, now, Some(due))]
            }
            Some(Ok(Effect::Appended(Appended::Awaited(lease)))) => {
                vec![Change::release(lease, now, None)]
            }
            Some(Ok(Effect::Claimed(claimed))) => claimed
                .into_iter()
                .map(|claimed| Change::release(claimed.lease, now, Some(due)))
                .collect(),
            Some(_) | None => return,
        };
        for change in changes {
            // Fails only when the log is closed, and then the lease ends with its node.
            let _ = self.abandoned.send(change);
        }
    }
}

impl Work {
    /// The bytes that it holds in memory, about.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Append(message) => message.size_bytes(),
            Self::AppendTried(rows) => rows.iter().map(Row::size_bytes).sum(),
            Self::Checkpoint(checkpoint) => checkpoint.output.len(),
            Self::Settle(change) => change.size_bytes(),
        }
    }

    pub fn brings_messages(&self) -> bool {
        matches!(self, Self::Append(_) | Self::AppendTried(_))
    }

    /// How many keys have to be locked for it. What has none may be written beside anything else.
    pub fn keys(&self) -> usize {
        match self {
            Self::Append(message) => {
                message.dedupe.len() + usize::from(message.ordering_key.is_some())
            }
            Self::Settle(change) => usize::from(change.ends_order()),
            Self::AppendTried(_) | Self::Checkpoint(_) => 0,
        }
    }

    /// The number of events that it may write.
    pub fn events(&self) -> usize {
        match self {
            Self::Append(_) | Self::Settle(_) => 1,
            Self::AppendTried(rows) => 2 * rows.len(),
            Self::Checkpoint(_) => 0,
        }
    }

    /// Something may wait in the log after this that nobody held before.
    pub fn leaves_something(&self, effect: &Effect) -> bool {
        match self {
            Self::Append(_) => matches!(effect, Effect::Appended(Appended::Waiting)),
            Self::AppendTried(rows) => rows.iter().any(|row| !row.status().is_final()),
            // The next of its key may be due now.
            Self::Settle(change) => change.ordered || !change.is_final(),
            Self::Checkpoint(_) => false,
        }
    }
}

impl Change {
    /// What a settlement asks for.
    pub fn settling(settlement: &Settlement) -> Result<Self, Error> {
        let Settlement {
            lease,
            at,
            attempt,
            outcome,
            output,
            failure,
            trace,
        } = settlement;
        let trace = trace::text(trace)?;
        let (due_at, attempts, error) = match outcome {
            Outcome::Delivered | Outcome::Filtered => (None, Some(*attempt), Problem::Clear),
            Outcome::DeadLetter | Outcome::Discarded => (
                None,
                Some(*attempt),
                failure.clone().map_or(Problem::Keep, Problem::Set),
            ),
            Outcome::Retry { due } => (
                Some(*due),
                Some(*attempt),
                failure.clone().map_or(Problem::Keep, Problem::Set),
            ),
            Outcome::Release { due } => (Some(*due), None, Problem::Keep),
            Outcome::Yield => (None, None, Problem::Keep),
            Outcome::Hold { due } => (
                Some(*due),
                None,
                failure.clone().map_or(Problem::Keep, Problem::Set),
            ),
        };
        let output = output.clone();
        Ok(Self {
            due_at,
            attempts,
            error,
            output,
            trace,
            ..Self::of(lease.clone(), *at, outcome.status(), nobody())
        })
    }

    /// Returns the change that gives a message back undone; without a due time it waits for its
    /// turn in its ordering key.
    pub fn release(lease: Lease, at: Timestamp, due: Option<Timestamp>) -> Self {
        Self {
            due_at: due,
            ..Self::of(lease, at, None, nobody())
        }
    }

    /// A message that waited and needs no delivery.
    pub fn discarding(
        lease: Lease,
        at: Timestamp,
        failure: Failure,
        trace: Option<String>,
    ) -> Self {
        let error = Problem::Set(failure);
        Self {
            error,
            trace,
            ..Self::of(lease, at, Some(Status::Discarded), nobody())
        }
    }

    /// A change of hands, on the ground of the hold that `found` shows.
    pub fn claiming(found: &Claimed, owner: &BootId, at: Timestamp) -> Self {
        Self {
            due_at: Some(Timestamp::steady()),
            ..Self::of(
                found.lease.clone(),
                at,
                Some(Status::Processing),
                owner.clone(),
            )
        }
    }

    /// The message has come to its end by this change.
    pub fn is_final(&self) -> bool {
        self.status.is_some_and(Status::is_final)
    }

    /// Its ordering key moves on by this change.
    pub fn ends_order(&self) -> bool {
        self.ordered && (self.is_final() || self.due_at.is_none())
    }

    /// The hold that it makes, once it is the event of that number.
    pub fn lease(&self, event: i64) -> Lease {
        Lease {
            message_id: self.message_id.clone(),
            seq: self.seq,
            owner: self.to_owner.clone(),
            token: event,
            ordered: self.ordered,
        }
    }

    fn of(lease: Lease, at: Timestamp, status: Option<Status>, to_owner: BootId) -> Self {
        Self {
            message_id: lease.message_id,
            seq: lease.seq,
            from_owner: lease.owner,
            from_token: lease.token,
            at,
            to_owner,
            status,
            attempts: None,
            due_at: None,
            error: Problem::Keep,
            output: None,
            trace: None,
            ordered: lease.ordered,
        }
    }

    fn size_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, Bytes::len) + self.trace.as_ref().map_or(0, String::len)
    }
}

/// The owner of a message that nobody works on.
fn nobody() -> BootId {
    BootId::new("")
}
