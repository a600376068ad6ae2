//! What the writer is asked to do, and what it answers.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use kanat_rate_limit::Exchange;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::inbox::Inbox;
pub(super) use crate::change::{Change, ErrorChange as Problem, nobody};
use crate::completed::CompletedRow;
use crate::effect::ReleaseSink;
use crate::{Lease, NewMessage, Poll, PollClaim, SavedPlan, SeenRecord, StepCheckpoint, Tenant};

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
    AppendCompleted(Vec<CompletedRow>),
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

pub(super) type Effect = crate::effect::Effect<Lease>;

pub(super) type Answer = crate::effect::Answer<Lease, Arc<Inbox>>;

impl ReleaseSink for Arc<Inbox> {
    fn release(&self, change: Change) {
        // A closed inbox drops it, and then the lease ends with its node.
        self.push(Operation {
            work: Work::Settle(Box::new(change)),
            reply: None,
        });
    }
}

impl Work {
    /// The bytes that it holds in memory, about.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Append(message) => message.size_bytes(),
            Self::AppendCompleted(rows) => rows.iter().map(CompletedRow::size_bytes).sum(),
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
