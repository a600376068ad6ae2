//! Messages whose first attempt ended before they were appended.

use std::sync::Arc;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::message::{Failure, Status};

use crate::change::ColumnValues;
use crate::{Error, NewMessage, Outcome, TraceRecord, trace};

/// A message and its first attempt, which ended before the message was appended. The message itself
/// has not ended if the outcome is a retry. It has no ordering key and no deduplication keys. Its
/// place is ignored: no node holds it.
#[derive(Debug, Clone)]
pub struct AttemptedMessage {
    pub message: NewMessage,
    /// When the attempt ended.
    pub at: Timestamp,
    pub outcome: Outcome,
    /// Output of the attempt; stored with the message.
    pub output: Option<Bytes>,
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
}

/// An [`AttemptedMessage`] in the form of the tables.
#[derive(Debug)]
pub(crate) struct AttemptedRow {
    attempted: Arc<AttemptedMessage>,
    /// JSON.
    trace: Option<String>,
}

impl AttemptedRow {
    pub fn new(attempted: Arc<AttemptedMessage>) -> Result<Self, Error> {
        let trace = trace::text(&attempted.trace)?;
        Ok(Self { attempted, trace })
    }

    pub fn message(&self) -> &NewMessage {
        &self.attempted.message
    }

    /// Returns the columns that the message has after its attempt.
    pub fn column_values(&self) -> ColumnValues<'_> {
        let AttemptedMessage {
            at,
            outcome,
            output,
            failure,
            ..
        } = self.attempted.as_ref();
        let at = at.as_millis();
        let status = outcome.status();
        let shows_failure = matches!(
            outcome,
            Outcome::Delivered | Outcome::Retry { .. } | Outcome::DeadLetter | Outcome::Discarded
        );
        ColumnValues {
            at,
            status,
            attempts: outcome.is_attempt().then_some(1),
            due_at: outcome.due().map(|due| due.as_millis().max(0)),
            completed_at: status.is_some_and(Status::is_final).then_some(at),
            failure: failure.as_ref().filter(|_| shows_failure),
            output: output.as_deref(),
            trace: self.trace.as_deref(),
        }
    }

    /// Returns whether the message ended with its attempt.
    pub fn is_final(&self) -> bool {
        self.attempted
            .outcome
            .status()
            .is_some_and(Status::is_final)
    }

    /// Returns the approximate number of bytes that the log has to store.
    pub fn size_bytes(&self) -> usize {
        self.message().size_bytes()
            + self.attempted.output.as_ref().map_or(0, Bytes::len)
            + self.trace.as_ref().map_or(0, String::len)
    }
}
