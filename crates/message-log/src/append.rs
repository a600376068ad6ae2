//! New messages, and the outcome of their append.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{Status, Trigger};

use crate::Lease;

/// Approximate bytes of an unfinished message on disk without its bodies: its row, its index
/// entries and its first events.
const ROW_BYTES: usize = 1024;

/// A message to append.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub id: MessageId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    pub flow_name: String,
    /// Version of the flow that runs it, through all its retries, unless the retry of a dead letter
    /// names another version.
    pub flow_version: u32,
    pub trigger: Trigger,
    /// Body as it was received.
    pub raw_body: Bytes,
    /// Payload as JSON; `None` when `raw_body` is the payload.
    pub payload: Option<Bytes>,
    /// JSON object with the headers, query, method, path parameters and time of the request, which
    /// expressions see as `trigger`.
    pub request: Bytes,
    /// Instant of receipt, from which the time to live of the `dedupe_keys` counts.
    pub received_at: Timestamp,
    /// Key whose messages in one flow run one at a time, in the order of their appends.
    pub ordering_key: Option<String>,
    /// Deduplication keys. If the flow has seen one of them that refuses repeats, nothing is
    /// stored.
    pub dedupe_keys: Vec<DedupeKey>,
    pub replay_of: Option<MessageId>,
    pub batch_id: Option<String>,
    /// Number of attempts, with the first one; at least 1.
    pub max_attempts: u32,
    pub traceparent: Option<String>,
    pub place: Placement,
}

/// A key that identifies repeats of a message within its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeKey {
    pub key: String,
    pub ttl: Duration,
    pub policy: RepeatPolicy,
}

/// Treatment of a message whose key another message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatPolicy {
    /// The message is a duplicate, and nothing is stored.
    Refuse,
    /// The message is stored, and the key stays with its holder. It is the policy of messages that
    /// a person sends again on purpose.
    Accept,
}

impl DedupeKey {
    /// Returns the key with a policy that stores repeats.
    pub fn accepting_repeats(self) -> Self {
        Self {
            policy: RepeatPolicy::Accept,
            ..self
        }
    }

    pub(crate) fn refuses_repeats(&self) -> bool {
        match self.policy {
            RepeatPolicy::Refuse => true,
            RepeatPolicy::Accept => false,
        }
    }
}

/// Placement of a new message in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// Leased to the node that appends it, which runs it at once.
    Leased(BootId),
    /// Like [`Self::Leased`], but the message may have to wait for its turn: an earlier message of
    /// its ordering key is unfinished. Then it is assigned to the appending node although it may
    /// not run yet, because a caller of that node waits for its outcome
    /// ([`AppendOutcome::Awaited`]). Other nodes claim it only after the lease ends or that node
    /// gives it up. Used only with an ordering key.
    Awaited(BootId),
    /// Put into the backlog, due now, for any node to claim.
    Queued,
    /// Put into the backlog of a paused flow: shown as `held` until a node claims for that flow.
    Held,
}

/// Outcome of a committed append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The caller holds the lease and runs the message now.
    Leased(Lease),
    /// A claim will find the message: it is queued or held, or waits for its turn in its ordering
    /// key.
    Waiting,
    /// The message waits for its turn in its ordering key. Only the node that appended it may claim
    /// it ([`crate::Claim::awaited`]), or give it up under this lease by [`crate::Outcome::Yield`]
    /// or as discarded.
    Awaited(Lease),
    /// The log has a message with one of its keys; nothing was stored.
    Duplicate(MessageId),
}

/// Row of a message that is no duplicate.
pub(crate) struct NewRow<'m> {
    pub message: &'m NewMessage,
    pub seq: i64,
    /// An unfinished message of its ordering key comes first.
    pub is_blocked: bool,
}

impl<'m> NewRow<'m> {
    /// Returns a message that waits for no other one.
    pub fn new(message: &'m NewMessage, seq: i64) -> Self {
        Self {
            message,
            seq,
            is_blocked: false,
        }
    }

    fn is_leased(&self) -> bool {
        let has_owner = matches!(
            self.message.place,
            Placement::Leased(_) | Placement::Awaited(_)
        );
        has_owner && !self.is_blocked
    }

    pub fn owner(&self) -> &'m str {
        match &self.message.place {
            Placement::Leased(owner) if !self.is_blocked => owner.as_str(),
            Placement::Awaited(owner) => owner.as_str(),
            Placement::Leased(_) | Placement::Queued | Placement::Held => "",
        }
    }

    pub fn status(&self) -> Status {
        if self.is_leased() {
            Status::Processing
        } else {
            self.arrival_status()
        }
    }

    /// Returns the status of the message before a node holds it.
    pub fn arrival_status(&self) -> Status {
        match self.message.place {
            Placement::Leased(_) | Placement::Awaited(_) | Placement::Queued => Status::Received,
            Placement::Held => Status::Held,
        }
    }

    /// Returns the due time as the value of a column.
    pub fn due_at(&self) -> Option<i64> {
        (!self.is_blocked).then(|| self.message.due_at().as_millis())
    }

    pub fn outcome(&self) -> AppendOutcome {
        match &self.message.place {
            Placement::Leased(owner) | Placement::Awaited(owner) if !self.is_blocked => {
                AppendOutcome::Leased(self.message.first_lease(owner, self.seq))
            }
            Placement::Awaited(owner) => {
                AppendOutcome::Awaited(self.message.first_lease(owner, self.seq))
            }
            Placement::Leased(_) | Placement::Queued | Placement::Held => AppendOutcome::Waiting,
        }
    }
}

impl NewMessage {
    /// Returns the lease of the first holder. Its token is the sequence number of the message.
    fn first_lease(&self, owner: &BootId, seq: i64) -> Lease {
        let ordered = self.ordering_key.is_some();
        Lease {
            message_id: self.id.clone(),
            seq,
            owner: owner.clone(),
            token: seq,
            ordered,
        }
    }

    /// Returns the due time by the steady clock: now, less the age of the message.
    fn due_at(&self) -> Timestamp {
        let due = self.received_at.to_steady().min(Timestamp::steady());
        due.max(Timestamp::from_millis(0))
    }

    /// Returns the approximate number of bytes that the log has to store.
    pub fn size_bytes(&self) -> usize {
        self.raw_body.len() + self.payload.as_ref().map_or(0, Bytes::len) + self.request.len()
    }

    /// Returns the bytes that the message counts for in the backlog: its bodies and its rows.
    pub fn stored_bytes(&self) -> u64 {
        (self.size_bytes() + ROW_BYTES) as u64
    }

    /// Returns [`Self::stored_bytes`] as the value of a column.
    pub(crate) fn size_column(&self) -> i64 {
        i64::try_from(self.stored_bytes()).unwrap_or(i64::MAX)
    }
}
