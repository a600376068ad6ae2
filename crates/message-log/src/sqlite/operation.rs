//! What the writer is asked to do, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::{Failure, Status};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::inbox::Inbox;
use crate::tried::Row;
use crate::{
    Appended, Error, Exchange, Exchanged, Lease, NewMessage, Poll, PollClaim, PollClaimed,
    SavedPlan, SeenRecord, Settled, StepCheckpoint, Tenant,
};

/// One thing to do, as part of some transaction.
pub(super) struct Operation {
    pub work: Work,
    /// Who waits for the answer, and the place in the queue that this takes until then. `None`
    /// where nobody waits.
    pub reply: Option<Reply>,
}

pub(super) type Reply = (oneshot::Sender<Answer>, OwnedSemaphorePermit);

pub(super) enum Work {
    Append(Box<NewMessage>),
    AppendTried(Vec<Row>),
    Checkpoint(Box<StepCheckpoint>),
    Settle(Box<Change>),
    Claim(Vec<Change>),
    Retry {
        tenant: Tenant,
        id: MessageId,
        flow_version: Option<u32>,
    },
    Discard {
        tenant: Tenant,
        id: MessageId,
    },
    EndFlow {
        flow_id: FlowId,
        failure: Failure,
    },
    OpenLease {
        owner: BootId,
        node: NodeId,
        ttl_ms: i64,
    },
    RenewLease(BootId),
    HandBack(BootId),
    SavePlans(Vec<SavedPlan>),
    ClaimPoll(Box<PollClaim>),
    KeepPoll(Box<Poll>),
    NoteRecords {
        flow_id: FlowId,
        records: Vec<SeenRecord>,
    },
    ForgetRecords {
        flow_id: FlowId,
        before: Timestamp,
    },
    Exchange(Box<Exchange>),
    ForgetQuotas,
    ForgetPoll(FlowId),
    /// Finished messages from one seq to another.
    DropMessages {
        from: i64,
        to: i64,
        older_than: Timestamp,
    },
    DropKeys {
        expired_at: Timestamp,
    },
    DropPlan {
        flow_id: FlowId,
        version: u32,
        checked_at: Timestamp,
    },
    /// Writes as much as a small message does.
    Probe,
    /// Puts what was answered into the tables, for somebody who reads them.
    Fold,
    /// Gives so many free pages back to the disk; not part of a transaction.
    Shrink {
        pages: u32,
    },
    /// Moves everything into the main file; not part of a transaction.
    Truncate,
    /// Nothing more will come.
    Close,
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
    Claimed(Vec<Lease>),
    Polled(PollClaimed),
    Exchanged(Exchanged),
    Done,
    Count(u64),
    /// It could not be done in the message's state.
    Refused(Error),
}

/// An effect on its way to its caller. When the caller has gone away meanwhile, the leases in it
/// are given back: else nobody would work on these messages as long as the node lives.
pub(super) struct Answer {
    result: Option<Result<Effect, Error>>,
    inbox: Arc<Inbox>,
}

impl Answer {
    pub fn new(result: Result<Effect, Error>, inbox: Arc<Inbox>) -> Self {
        Self {
            result: Some(result),
            inbox,
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
            Some(Ok(Effect::Claimed(leases))) => leases
                .into_iter()
                .map(|lease| Change::release(lease, now, Some(due)))
                .collect(),
            Some(_) | None => return,
        };
        for change in changes {
            // A closed inbox drops it, and then the lease ends with its node.
            self.inbox.push(Operation {
                work: Work::Settle(Box::new(change)),
                reply: None,
            });
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
            Self::SavePlans(plans) => plans.iter().map(|plan| plan.body.len()).sum(),
            Self::KeepPoll(poll) => poll.state.as_ref().map_or(0, Bytes::len),
            Self::NoteRecords { records, .. } => records.iter().map(|record| record.id.len()).sum(),
            Self::Claim(_)
            | Self::ClaimPoll(_)
            | Self::ForgetRecords { .. }
            | Self::Exchange(_)
            | Self::ForgetQuotas
            | Self::Probe
            | Self::ForgetPoll(_)
            | Self::Retry { .. }
            | Self::Discard { .. }
            | Self::EndFlow { .. }
            | Self::OpenLease { .. }
            | Self::RenewLease(_)
            | Self::HandBack(_)
            | Self::DropMessages { .. }
            | Self::DropKeys { .. }
            | Self::DropPlan { .. }
            | Self::Fold
            | Self::Shrink { .. }
            | Self::Truncate
            | Self::Close => 0,
        }
    }
}

impl Change {
    /// Returns the change that gives a message back undone; without a due time it waits for its
    /// turn in its ordering key.
    pub fn release(lease: Lease, at: Timestamp, due: Option<Timestamp>) -> Self {
        Self {
            message_id: lease.message_id,
            seq: lease.seq,
            from_owner: lease.owner,
            from_token: lease.token,
            at,
            to_owner: nobody(),
            status: None,
            attempts: None,
            due_at: due,
            error: Problem::Keep,
            output: None,
            trace: None,
            ordered: lease.ordered,
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

    fn size_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, Bytes::len) + self.trace.as_ref().map_or(0, String::len)
    }
}

/// The owner of a message that nobody works on.
pub(super) fn nobody() -> BootId {
    BootId::new("")
}
