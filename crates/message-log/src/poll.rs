//! Polls of flows, as nodes share them: the holder, the due time, the state of the last poll, and
//! the records that were seen. The state is opaque to the log.

pub(crate) mod read;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId};

use crate::{LeasedWriteOutcome, Result};

/// Polls of flows: one holder at a time, its state, and the records that a flow has seen.
#[async_trait::async_trait]
pub trait PollStore: Send + Sync {
    /// Claims the poll of a flow, if it is due and nobody holds it.
    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimOutcome>;

    /// Writes the state of a poll, unless another holder has taken it over.
    async fn update_poll(&self, poll: &Poll) -> Result<LeasedWriteOutcome>;

    /// Returns those of these records that a flow has seen.
    async fn seen_records(&self, flow_id: &FlowId, ids: &[String]) -> Result<Vec<SeenRecord>>;

    /// Stores that a flow has seen these records. Of records with one id the last counts.
    async fn upsert_seen_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<()>;

    /// Forgets the records that a flow has seen before an instant and not since.
    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<()>;

    /// Returns the status of the polls of flows, without flows that were never polled.
    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>>;

    /// Returns the flows that were ever polled and not forgotten, in the order of their ids.
    async fn polled_flows(&self) -> Result<Vec<FlowId>>;

    /// Forgets some records that a flow has seen or, when none are left, its poll. `true` when
    /// there is more to do.
    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool>;
}

/// A request of a node to poll for a flow.
#[derive(Debug, Clone)]
pub struct PollClaim {
    pub flow_id: FlowId,
    /// Version of the flow. A later version than the one that polled last is due at once.
    pub version: u32,
    pub owner: BootId,
    pub now: Timestamp,
    /// End of the hold, before which no other node polls for the flow.
    pub held_until: Timestamp,
}

/// Outcome of a poll claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollClaimOutcome {
    Taken {
        /// Fencing token, different for every holder.
        token: i64,
        /// State as it was written last; empty at first.
        state: Bytes,
    },
    /// Another node polls, or nothing is due before this instant.
    Later(Timestamp),
}

/// A poll as its holder writes it, for itself or for the next holder.
#[derive(Debug, Clone)]
pub struct Poll {
    pub flow_id: FlowId,
    pub owner: BootId,
    pub token: i64,
    pub version: u32,
    /// Instant of the next poll.
    pub due_at: Timestamp,
    pub held_until: Timestamp,
    /// `None` keeps the former state.
    pub state: Option<Bytes>,
    /// End of a cycle; `None` keeps the former one.
    pub ended: Option<PollCycleEnd>,
}

/// End of a poll cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollCycleEnd {
    pub at: Timestamp,
    /// Reason of a failure, without secrets.
    pub error: Option<String>,
}

/// Status of the poll of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollStanding {
    /// Instant at which the flow is due: in the past while it is being polled.
    pub due_at: Timestamp,
    /// End of the hold of the node that polls it; in the past where none does.
    pub held_until: Timestamp,
    /// Last cycle that has ended; `None` before the first.
    pub ended: Option<PollCycleEnd>,
}

/// A record that a flow has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRecord {
    /// Id of the record within the flow.
    pub id: String,
    /// Hash of the content.
    pub hash: String,
    /// Number of times that it was appended.
    pub count: i64,
    pub seen_at: Timestamp,
}
