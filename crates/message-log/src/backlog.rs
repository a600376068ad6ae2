//! The backlog: messages that were accepted and have not ended.

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

/// The unfinished messages of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backlog {
    pub flow_id: FlowId,
    pub messages: u64,
    /// Sum of [`crate::NewMessage::stored_bytes`] of these messages.
    pub bytes: u64,
    /// Instant since which the oldest message waits whose first attempt has not ended, by the
    /// steady clock: it became due then, or a node took it up. Messages that are held, are retried,
    /// are due later or stand behind an ordering key are left out.
    pub oldest: Option<Timestamp>,
}
