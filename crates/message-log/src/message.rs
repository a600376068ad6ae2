//! A message as it stands in the log.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{Failure, Status, Trigger};

/// Whose messages: every read names it, and finds nothing of anybody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
}

/// A message and what became of it so far.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: MessageId,
    /// Its place in the log's order.
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
    /// What was sent last.
    pub output: Option<Bytes>,
    pub attempts: u32,
    pub max_attempts: u32,
    /// While it is `retrying`.
    pub next_attempt_at: Option<Timestamp>,
    pub error: Option<Failure>,
    pub received_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub batch_id: Option<String>,
    pub replay_of: Option<MessageId>,
    pub ordering_key: Option<String>,
    /// `<traceparent>`, and behind a space the `tracestate` where its sender had one.
    pub traceparent: Option<String>,
}

/// A message as it came in, to be sent again as a new one.
#[derive(Debug, Clone)]
pub struct Content {
    pub raw_body: Bytes,
    /// `None` when `raw_body` is the JSON payload.
    pub payload: Option<Bytes>,
    pub request: Bytes,
}
