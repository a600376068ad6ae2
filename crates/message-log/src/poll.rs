//! What nodes know together of a flow that polls: who polls it now, when it is due, what its last
//! poll left behind, and which records it has seen. What the state says is the nodes' own affair.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId};

/// A wish to poll for a flow.
#[derive(Debug, Clone)]
pub struct PollClaim {
    pub flow_id: FlowId,
    /// A later version than the one that polled last is due at once.
    pub version: u32,
    pub owner: BootId,
    pub now: Timestamp,
    /// Until then nobody else polls for it.
    pub held_until: Timestamp,
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollClaimed {
    Taken {
        /// Another one for every holder.
        token: i64,
        /// As it was kept last; empty at first.
        state: Bytes,
    },
    /// Another polls, or nothing is due: not before this instant.
    Later(Timestamp),
}

/// A poll as its holder leaves it, for itself or for the next one.
#[derive(Debug, Clone)]
pub struct Poll {
    pub flow_id: FlowId,
    pub owner: BootId,
    pub token: i64,
    pub version: u32,
    /// When it is to be polled next.
    pub due_at: Timestamp,
    pub held_until: Timestamp,
    /// `None` leaves what was kept before.
    pub state: Option<Bytes>,
    /// How a cycle ended, when one has; `None` leaves what was kept before.
    pub ended: Option<PollEnded>,
}

/// The end of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollEnded {
    pub at: Timestamp,
    /// Why it failed, in words without secrets.
    pub error: Option<String>,
}

/// How the poll of a flow stands, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollStanding {
    /// When it is to be polled next, or the end of the hold under which it is polled.
    pub due_at: Timestamp,
    /// The last cycle that has ended; none before the first.
    pub ended: Option<PollEnded>,
}

/// A record that a flow has taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRecord {
    /// What tells it from others of the flow.
    pub id: String,
    /// Of its content.
    pub hash: String,
    /// How often it was taken in.
    pub count: i64,
    pub seen_at: Timestamp,
}
