//! New messages together with their first attempts.

use kanat_model::id::MessageId;
use kanat_model::message::{Failure, Status};
use rusqlite::params;

use super::append::insert_body;
use super::change::INSERT_EVENT;
use super::operation::{Change, Effect};
use super::transaction::Transaction;
use crate::NewMessage;
use crate::tried::Row;

const INSERT_MESSAGE: &str = "
INSERT INTO messages (seq, id, account_id, environment_id, flow_id, flow_name, flow_version,
    trigger_kind, status, accepted_as, owner, token, due_at, attempts, max_attempts,
    granted_attempts, error_kind, error_message, error_field, error_expression, received_at,
    completed_at, replay_of, batch_id, traceparent, size_bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, ?12, ?13, ?14, ?14, ?15, ?16, ?17, ?18,
    ?19, ?20, ?21, ?22, ?23, ?24)";

/// Two events of each message: that it came in, and what its attempt came to.
pub(super) fn append(tx: &mut Transaction<'_, '_>, rows: &[Row]) -> rusqlite::Result<Effect> {
    for row in rows {
        let seq = tx.take_seq();
        let event = tx.take_seq();
        First::of_row(row, seq, event).insert(tx)?;
    }
    Ok(Effect::Tried(u64::try_from(rows.len()).unwrap_or(u64::MAX)))
}

/// A message and its first attempt, which is over.
pub(super) struct First<'r> {
    message: &'r NewMessage,
    seq: i64,
    /// That of the attempt's end.
    event: i64,
    at: i64,
    status: Status,
    attempts: u32,
    due_at: Option<i64>,
    completed_at: Option<i64>,
    failure: Option<&'r Failure>,
    output: Option<&'r [u8]>,
    /// JSON.
    trace: Option<&'r str>,
}

impl<'r> First<'r> {
    /// A message, and the change that ended it.
    pub fn of(message: &'r NewMessage, seq: i64, end: &'r Change, event: i64) -> Self {
        let at = end.at.as_millis();
        Self {
            message,
            seq,
            event,
            at,
            status: end.status.unwrap_or(Status::Received),
            attempts: end.attempts.unwrap_or(0),
            due_at: None,
            completed_at: Some(at),
            failure: end.failure(),
            output: end.output.as_deref(),
            trace: end.trace.as_deref(),
        }
    }

    fn of_row(row: &'r Row, seq: i64, event: i64) -> Self {
        Self {
            message: row.message(),
            seq,
            event,
            at: row.at(),
            status: row.status(),
            attempts: row.attempts(),
            due_at: row.due_at(),
            completed_at: row.completed_at(),
            failure: row.failure(),
            output: row.output(),
            trace: row.trace.as_deref(),
        }
    }

    pub fn insert(&self, tx: &Transaction<'_, '_>) -> rusqlite::Result<()> {
        let Self {
            message,
            seq,
            event,
            ..
        } = *self;
        let kind = self.failure.map(|failure| failure.kind.as_str());
        let text = self.failure.map(|failure| failure.message.as_str());
        let field = self.failure.and_then(|failure| failure.field.as_deref());
        let expression = self
            .failure
            .and_then(|failure| failure.expression.as_deref());
        let values = params![
            seq,
            message.id.as_str(),
            message.account_id.as_str(),
            message.environment_id.as_str(),
            message.flow_id.as_str(),
            message.flow_name,
            message.flow_version,
            message.trigger.as_str(),
            self.status.as_str(),
            Status::Received.as_str(),
            event,
            self.due_at,
            self.attempts,
            message.max_attempts.max(1),
            kind,
            text,
            field,
            expression,
            message.received_at.as_millis(),
            self.completed_at,
            message.replay_of.as_ref().map(MessageId::as_str),
            message.batch_id,
            message.traceparent,
            message.size_column(),
        ];
        tx.execute(INSERT_MESSAGE, values)?;
        insert_body(tx, seq, message)?;
        let values = params![
            event,
            seq,
            self.at,
            self.status.as_str(),
            self.attempts,
            self.due_at,
            kind,
            text,
            field,
            expression,
            self.output,
            self.trace,
        ];
        tx.execute(INSERT_EVENT, values)?;
        Ok(())
    }
}
