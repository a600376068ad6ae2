//! Who works on a message: leases, claims, and what a claim hands out.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, EpochId, FlowId, MessageId, NodeId};
use kanat_model::message::Trigger;

/// The right to work on one message. It ends when the message is settled, or when another node
/// claims the message because the owner's lease ran out; what is written under it after that is
/// refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub message_id: MessageId,
    /// The message's place in the log's order.
    pub seq: i64,
    pub owner: BootId,
    /// Another one for every holder.
    pub token: i64,
    /// The message has an ordering key, so that others may wait for its end.
    pub ordered: bool,
}

/// The lease of a node, under which it holds all its messages, as its owner knows it.
#[derive(Debug)]
pub struct NodeLease {
    pub owner: BootId,
    pub node: NodeId,
    pub(crate) known: Known,
}

/// What the owner of a lease wrote into it last. A log that says less is an earlier copy of the one
/// that was written.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The epoch of the log when the lease was opened; `None` in a log that cannot change its past
    /// while it is open.
    pub epoch: Option<EpochId>,
    /// Which incarnation of the database it was; empty where the database does not tell.
    pub incarnation: String,
    /// The counter of the node's leases as it was certainly written.
    pub written: i64,
    /// The counter as it was written if the last renewal took effect without an answer.
    pub asked: i64,
}

/// What became of a wish to renew a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    Done,
    /// It had been ended by [`crate::MessageLog::hand_back`] or by a later boot of the node.
    Ended,
    /// The log is an earlier copy of the one in which the lease was opened, or somebody found that
    /// before: places and tokens of before may be those of other messages now.
    PastChanged {
        former: EpochId,
        present: EpochId,
    },
}

/// A wish to work on what waits.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: BootId,
    /// Sum of [`crate::Claimed::stored_bytes`] of all claimed messages, at most. Awaited messages
    /// do not count.
    pub bytes: u64,
    /// Flows whose messages may be taken. A flow that is paused or busy is not named.
    pub shares: Vec<Share>,
    /// Messages that this owner awaits. Those whose turn has come are taken before all others.
    pub awaited: Vec<Awaited>,
}

/// Messages of one flow that were appended as [`crate::Place::Awaited`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    /// The messages' places in the log's order.
    pub seqs: Vec<i64>,
    /// How many of them are taken at most.
    pub messages: u32,
}

/// Memory for the messages of some flows together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Sum of [`crate::Claimed::stored_bytes`] of the messages, at most.
    pub bytes: u64,
    pub rooms: Vec<Room>,
}

impl Share {
    /// Returns a share for rooms that are bounded by their number of messages alone.
    pub fn unbounded(rooms: Vec<Room>) -> Self {
        Self {
            bytes: u64::MAX,
            rooms,
        }
    }
}

/// Room for messages of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub flow_id: FlowId,
    pub messages: u32,
    /// Versions of the flow whose messages are left to others.
    pub without_versions: Vec<u32>,
}

/// A message that the claimer now holds, with all that a run needs.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub lease: Lease,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    pub flow_name: String,
    /// The version to run it under.
    pub flow_version: u32,
    pub trigger: Trigger,
    pub raw_body: Bytes,
    /// JSON; the same bytes as `raw_body` where that is JSON.
    pub payload: Bytes,
    pub request: Bytes,
    /// Bytes that it counts for in the backlog.
    pub stored_bytes: u64,
    pub received_at: Timestamp,
    /// Since when it could be claimed: whoever gives it back unlooked at gives it back with that.
    pub due_at: Timestamp,
    /// Attempts already made and settled.
    pub attempts: u32,
    pub max_attempts: u32,
    pub ordering_key: Option<String>,
    pub traceparent: Option<String>,
    /// The steps that succeeded in earlier attempts.
    pub steps: Vec<Step>,
}

/// A step that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: String,
    /// Of the step's HTTP answer.
    pub status: u32,
    /// JSON.
    pub output: Bytes,
}

/// A flow with messages that nobody works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub flow_id: FlowId,
    /// How many a claim would find now; [`Waiting::COUNT_LIMIT`] stands for that many or more.
    pub due: u64,
    /// When the oldest of these became due.
    pub oldest: Option<Timestamp>,
    /// When the next one after now becomes due.
    pub next_due: Option<Timestamp>,
}

impl Waiting {
    pub const COUNT_LIMIT: u64 = 1_000;
}
