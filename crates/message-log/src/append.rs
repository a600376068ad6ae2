//! A message on its way into the log, and what the log says to it.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::Trigger;

use crate::Lease;

/// Bytes of an unfinished message on disk beside its bodies: its row, its index entries and its
/// first events, about.
const ROW_BYTES: usize = 1024;

/// A message to be kept.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub id: MessageId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    pub flow_name: String,
    /// The version that it runs under, through all its retries.
    pub flow_version: u32,
    pub trigger: Trigger,
    /// The bytes as they came.
    pub raw_body: Bytes,
    /// The payload as JSON; `None` when `raw_body` is that already.
    pub payload: Option<Bytes>,
    /// A JSON object of what came with the body: headers, query, method, path parameters, when.
    pub request: Bytes,
    /// Also the instant by which the time to live of the `dedupe` keys is counted.
    pub received_at: Timestamp,
    /// Messages of one flow with one key are worked on one at a time, in the order of their
    /// appends.
    pub ordering_key: Option<String>,
    /// If one of these is known to the flow already, nothing is stored.
    pub dedupe: Vec<Dedupe>,
    pub replay_of: Option<MessageId>,
    pub batch_id: Option<String>,
    /// The first attempt and its retries; at least 1.
    pub max_attempts: u32,
    pub traceparent: Option<String>,
    pub place: Place,
}

/// A key by which a repeat of a message is known, within its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dedupe {
    pub key: String,
    pub ttl: Duration,
}

/// Where a new message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// To the node that appends it, which runs it at once.
    Leased(BootId),
    /// To the node that appends it, as [`Place::Leased`], because a caller of that node waits for
    /// it. Behind its ordering key the message stays with that node ([`Appended::Awaited`]): no
    /// other one claims it before the lease ends or the node gives it up.
    Awaited(BootId),
    /// Into the backlog, due now, for any node to claim.
    Queued,
    /// Into the backlog of a paused flow: shown as `held`, claimed by nobody until someone claims
    /// for that flow.
    Held,
}

/// What became of an append. Whatever it says is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// The caller runs it now.
    Leased(Lease),
    /// A claim will find it: it was queued or held, or stands behind its ordering key.
    Waiting,
    /// It stands behind its ordering key, and only the node that appended it may claim it
    /// ([`crate::Claim::awaited`]), or give it up under this lease by [`crate::Outcome::Yield`] or
    /// as discarded.
    Awaited(Lease),
    /// A message with one of its keys is there already; nothing was stored.
    Duplicate(MessageId),
}

impl NewMessage {
    /// Returns the lease of the first holder. Its token is the first event of the message, which is
    /// its place in the log.
    pub(crate) fn first_lease(&self, owner: &BootId, seq: i64) -> Lease {
        let ordered = self.ordering_key.is_some();
        Lease {
            message_id: self.id.clone(),
            seq,
            owner: owner.clone(),
            token: seq,
            ordered,
        }
    }

    /// Returns when it is due by the clock of waits, which is at once: with the age that it has.
    pub(crate) fn due_at(&self) -> Timestamp {
        let due = self.received_at.to_steady().min(Timestamp::steady());
        due.max(Timestamp::from_millis(0))
    }

    /// The bytes that the log has to keep, about.
    pub fn size_bytes(&self) -> usize {
        self.raw_body.len() + self.payload.as_ref().map_or(0, Bytes::len) + self.request.len()
    }

    /// Returns the bytes that the message counts for in the backlog: what came in, and the room of
    /// its rows.
    pub fn stored_bytes(&self) -> u64 {
        (self.size_bytes() + ROW_BYTES) as u64
    }

    /// Returns [`Self::stored_bytes`] as a column has it.
    pub(crate) fn size_column(&self) -> i64 {
        i64::try_from(self.stored_bytes()).unwrap_or(i64::MAX)
    }
}
