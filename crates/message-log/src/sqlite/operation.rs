//! Work of the writer, and its effects.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use kanat_rate_limit::Exchange;

use crate::change::Change;
use crate::completed::CompletedRow;
use crate::{Lease, NewMessage, Poll, PollClaim, SavedPlan, SeenRecord, StepCheckpoint, Tenant};

/// Work of one operation, which is a part of a transaction unless its variant says otherwise.
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
    /// Drops finished messages within a range of sequence numbers.
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
    /// Writes as many bytes as a small message has.
    Probe,
    /// Applies the journal's pending writes to the tables, for a reader.
    Flush,
    /// Gives free pages back to the disk, outside a transaction.
    Shrink {
        pages: u32,
    },
    /// Moves the write-ahead log into the main file, outside a transaction.
    Truncate,
    /// Ends the writer, outside a transaction.
    Close,
}

pub(super) type Effect = crate::effect::Effect<Lease>;

impl Work {
    /// Returns the approximate number of bytes that the work has in memory.
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
            | Self::Flush
            | Self::Shrink { .. }
            | Self::Truncate
            | Self::Close => 0,
        }
    }
}
