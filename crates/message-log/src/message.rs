//! Messages in the log.

pub(crate) mod read;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{Failure, Status, Trigger};

/// Owner of messages. Every read names it, and finds no messages of other tenants.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
}

/// A message in its present state.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: MessageId,
    /// Sequence number in the log.
    pub seq: i64,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    pub flow_name: String,
    pub flow_version: u32,
    pub status: Status,
    pub trigger: Trigger,
    /// JSON.
    pub payload: Bytes,
    /// Output that was sent last.
    pub output: Option<Bytes>,
    pub attempts: u32,
    pub max_attempts: u32,
    /// Set while the message is `retrying`.
    pub next_attempt_at: Option<Timestamp>,
    pub error: Option<Failure>,
    pub received_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub batch_id: Option<String>,
    pub replay_of: Option<MessageId>,
    pub ordering_key: Option<String>,
    /// `traceparent`, followed by a space and the `tracestate` if the sender had one.
    pub traceparent: Option<String>,
}

/// Content of a message as it was received, to be sent again as a new one.
#[derive(Debug, Clone)]
pub struct Content {
    pub raw_body: Bytes,
    /// `None` when `raw_body` is the JSON payload.
    pub payload: Option<Bytes>,
    pub request: Bytes,
}
