//! Changes of the state of a message, as the writers of both backends apply them.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, MessageId};
use kanat_model::message::{Failure, Status};

use crate::{ClaimedMessage, Lease, Outcome, Result, Settlement, trace};

/// A change of the state of one message. It takes effect only if the message still has the owner
/// and the token with which the change was decided.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub message_id: MessageId,
    pub message_seq: i64,
    /// Owner that the message must have.
    pub from_owner: BootId,
    /// Token that the message must have.
    pub from_token: i64,
    pub at: Timestamp,
    pub to_owner: BootId,
    /// `None` returns the message to the status of a message that waits.
    pub status: Option<Status>,
    /// Number of attempts made; `None` keeps the number.
    pub attempts: Option<u32>,
    pub due_at: Option<Timestamp>,
    pub error: ErrorChange,
    pub output: Option<Bytes>,
    /// JSON.
    pub trace: Option<String>,
    /// The message has an ordering key, so that other messages may wait for its end.
    pub ordered: bool,
}

/// Change of the error that a message shows.
#[derive(Debug, Clone)]
pub(crate) enum ErrorChange {
    Keep,
    Clear,
    Set(Failure),
}

/// Values of columns of a message and of its event, after a change or a first attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnValues<'a> {
    pub at: i64,
    /// `None` for the status of a message that waits.
    pub status: Option<Status>,
    pub attempts: Option<u32>,
    pub due_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub failure: Option<&'a Failure>,
    pub output: Option<&'a [u8]>,
    /// JSON.
    pub trace: Option<&'a str>,
}

impl Change {
    /// Returns the change that a settlement makes.
    pub fn settling(settlement: &Settlement) -> Result<Self> {
        let Settlement {
            lease,
            at,
            attempt,
            outcome,
            output,
            failure,
            trace,
        } = settlement;
        let error = match outcome {
            Outcome::Delivered => failure.clone().map_or(ErrorChange::Clear, ErrorChange::Set),
            Outcome::Filtered => ErrorChange::Clear,
            Outcome::Release { .. } | Outcome::Yield => ErrorChange::Keep,
            Outcome::Retry { .. }
            | Outcome::DeadLetter
            | Outcome::Discarded
            | Outcome::Hold { .. } => failure.clone().map_or(ErrorChange::Keep, ErrorChange::Set),
        };
        Ok(Self {
            attempts: outcome.is_attempt().then_some(*attempt),
            due_at: outcome.due(),
            error,
            output: output.clone(),
            trace: trace::text(trace)?,
            ..Self::new(lease.clone(), *at, outcome.status(), nobody())
        })
    }

    /// Returns the change that releases a message without an attempt. Without a due time the
    /// message waits for its turn in its ordering key.
    pub fn release(lease: Lease, at: Timestamp, due_at: Option<Timestamp>) -> Self {
        Self {
            due_at,
            ..Self::new(lease, at, None, nobody())
        }
    }

    /// Returns the change that discards a message of a deleted flow, which had so many attempts.
    pub fn ending_flow(
        lease: Lease,
        at: Timestamp,
        attempts: u32,
        failure: &Failure,
    ) -> Result<Self> {
        Ok(Self {
            error: ErrorChange::Set(failure.clone()),
            trace: trace::text(&[trace::record(at, "discarded", "flow", attempts)])?,
            ..Self::new(lease, at, Some(Status::Discarded), nobody())
        })
    }

    /// Returns the change that gives `owner` a message whose present holder `found` names.
    pub fn claiming(found: &ClaimedMessage, owner: &BootId, at: Timestamp) -> Self {
        Self {
            due_at: Some(Timestamp::steady()),
            ..Self::new(
                found.lease.clone(),
                at,
                Some(Status::Processing),
                owner.clone(),
            )
        }
    }

    fn new(lease: Lease, at: Timestamp, status: Option<Status>, to_owner: BootId) -> Self {
        Self {
            message_id: lease.message_id,
            message_seq: lease.seq,
            from_owner: lease.owner,
            from_token: lease.token,
            at,
            to_owner,
            status,
            attempts: None,
            due_at: None,
            error: ErrorChange::Keep,
            output: None,
            trace: None,
            ordered: lease.ordered,
        }
    }

    /// Returns whether the message ends with this change.
    pub fn is_final(&self) -> bool {
        self.status.is_some_and(Status::is_final)
    }

    /// Returns whether the message ends with this change and has no ordering key, so that no other
    /// message waits for its end.
    pub fn is_final_without_ordering_key(&self) -> bool {
        self.is_final() && !self.ordered
    }

    /// Returns whether the next message of the ordering key may run after this change: the message
    /// ends, or goes back into the backlog without a due time.
    pub fn releases_ordering_key(&self) -> bool {
        self.ordered && (self.is_final() || self.due_at.is_none())
    }

    /// Returns the lease that the change grants when `event_seq` is the number of its event.
    pub fn lease(&self, event_seq: i64) -> Lease {
        Lease {
            message_id: self.message_id.clone(),
            seq: self.message_seq,
            owner: self.to_owner.clone(),
            token: event_seq,
            ordered: self.ordered,
        }
    }

    /// Returns the values that the change writes into columns.
    pub fn column_values(&self) -> ColumnValues<'_> {
        ColumnValues {
            at: self.at.as_millis(),
            status: self.status,
            attempts: self.attempts,
            due_at: self.due_at.map(|due| due.as_millis().max(0)),
            completed_at: self.is_final().then(|| self.at.as_millis()),
            failure: match &self.error {
                ErrorChange::Set(failure) => Some(failure),
                ErrorChange::Keep | ErrorChange::Clear => None,
            },
            output: self.output.as_deref(),
            trace: self.trace.as_deref(),
        }
    }

    /// Returns the approximate number of bytes that it has in memory.
    pub fn size_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, Bytes::len) + self.trace.as_ref().map_or(0, String::len)
    }
}

impl<'a> ColumnValues<'a> {
    pub fn error_kind(&self) -> Option<&'static str> {
        self.failure.map(|failure| failure.kind.as_str())
    }

    pub fn error_message(&self) -> Option<&'a str> {
        self.failure.map(|failure| failure.message.as_str())
    }

    pub fn error_field(&self) -> Option<&'a str> {
        self.failure?.field.as_deref()
    }

    pub fn error_expression(&self) -> Option<&'a str> {
        self.failure?.expression.as_deref()
    }
}

/// Returns the owner of a message that no node holds.
pub(crate) fn nobody() -> BootId {
    BootId::new("")
}
