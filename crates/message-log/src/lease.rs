//! Leases, claims and claimed messages.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, EpochId, FlowId, MessageId, NodeId};
use kanat_model::message::Trigger;

use crate::Content;

/// The right to work on one message. It ends when the message is settled, or when another node
/// claims the message because the owner's lease ran out; what is written under it after that is
/// refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub message_id: MessageId,
    /// Sequence number of the message.
    pub seq: i64,
    pub owner: BootId,
    /// Fencing token, different for every holder.
    pub token: i64,
    /// The message has an ordering key, so that other messages may wait for its end.
    pub ordered: bool,
}

/// The lease under which a node holds all its messages, as its owner knows it.
#[derive(Debug)]
pub struct NodeLease {
    pub owner: BootId,
    pub node: NodeId,
    pub(crate) known: LeaseState,
}

/// State that the owner of a lease wrote last. A log with an earlier state is an older copy.
#[derive(Debug, Default)]
pub(crate) struct LeaseState {
    /// The epoch of the log when the lease was opened; `None` in a log that cannot change its past
    /// while it is open.
    pub epoch: Option<EpochId>,
    /// Incarnation of the database; empty where the database has none.
    pub incarnation: String,
    /// Counter of the node's leases as it is certainly in the log.
    pub written: i64,
    /// Counter as it is in the log if the last renewal took effect without an answer.
    pub asked: i64,
}

/// Outcome of a write under a lease: a settlement, a step checkpoint, or an update of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum LeasedWriteOutcome {
    Done,
    /// The lease has ended: the message was claimed or settled since, or the poll claimed. Nothing
    /// was written.
    Fenced,
}

/// Outcome of the renewal of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewalOutcome {
    Done,
    /// The lease had been ended by [`crate::DeliveryStore::hand_back`] or by a later boot of the
    /// node.
    Ended,
    /// The log is an earlier copy of the one in which the lease was opened. Sequence numbers and
    /// tokens from before may belong to other messages now.
    PastChanged {
        former: EpochId,
        present: EpochId,
    },
}

/// A request of a node for waiting messages.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: BootId,
    /// Sum of [`crate::ClaimedMessage::stored_bytes`] of all claimed messages, at most. Awaited
    /// messages do not count.
    pub bytes: u64,
    /// Flows whose messages may be taken, and the memory for them. A flow that is paused or busy is
    /// not named.
    pub budgets: Vec<ClaimBudget>,
    /// Messages that this owner awaits. They are claimed before all others when their turn has
    /// come.
    pub awaited: Vec<AwaitedMessages>,
}

/// Messages of one flow that were appended as [`crate::Placement::Awaited`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedMessages {
    /// Sequence numbers of the messages.
    pub seqs: Vec<i64>,
    /// Most messages that are claimed.
    pub messages: u32,
}

/// Memory budget of a claim for the messages of some flows together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimBudget {
    /// Sum of [`crate::ClaimedMessage::stored_bytes`] of the messages, at most.
    pub bytes: u64,
    /// Largest [`crate::ClaimedMessage::stored_bytes`] of a first message that exceeds `bytes`. It
    /// is taken alone, so that no message waits for ever because of its size.
    pub single_bytes: u64,
    pub rooms: Vec<Room>,
}

impl ClaimBudget {
    /// Returns a budget for rooms that are bounded by their number of messages alone.
    pub fn unbounded(rooms: Vec<Room>) -> Self {
        Self {
            bytes: u64::MAX,
            single_bytes: u64::MAX,
            rooms,
        }
    }
}

/// Room for messages of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub flow_id: FlowId,
    pub messages: u32,
    /// Versions of the flow whose messages are left to other nodes.
    pub without_versions: Vec<u32>,
}

/// A message that the claiming node now holds, with all that a run needs.
#[derive(Debug, Clone)]
pub struct ClaimedMessage {
    pub lease: Lease,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    pub flow_name: String,
    /// Version of the flow that runs it.
    pub flow_version: u32,
    pub trigger: Trigger,
    pub raw_body: Bytes,
    /// JSON; shares the bytes of `raw_body` where that is the payload.
    pub payload: Bytes,
    pub request: Bytes,
    /// Bytes that the message counts for in the backlog.
    pub stored_bytes: u64,
    pub received_at: Timestamp,
    /// Instant since which it could be claimed. A node that releases it unprocessed restores it.
    pub due_at: Timestamp,
    /// Attempts that were made and settled.
    pub attempts: u32,
    pub max_attempts: u32,
    pub ordering_key: Option<String>,
    pub traceparent: Option<String>,
    /// Steps that succeeded in earlier attempts.
    pub steps: Vec<Step>,
}

impl ClaimedMessage {
    /// Sets the bodies. A body without a payload of its own is the payload.
    pub(crate) fn set_content(&mut self, content: Content) {
        self.payload = content.payload.unwrap_or_else(|| content.raw_body.clone());
        self.raw_body = content.raw_body;
        self.request = content.request;
    }
}

impl From<ClaimedMessage> for Lease {
    fn from(claimed: ClaimedMessage) -> Self {
        claimed.lease
    }
}

/// A step that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    /// Status of the step's HTTP response.
    pub status: u32,
    /// JSON.
    pub output: Bytes,
}

/// Waiting messages of a flow, which no node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub flow_id: FlowId,
    /// Number that a claim would find now; [`Waiting::COUNT_LIMIT`] stands for that many or more.
    pub due: u64,
    /// Instant at which the oldest of them became due.
    pub oldest: Option<Timestamp>,
    /// Instant at which the next one becomes due.
    pub next_due: Option<Timestamp>,
}

impl Waiting {
    pub const COUNT_LIMIT: u64 = 1_000;
}
