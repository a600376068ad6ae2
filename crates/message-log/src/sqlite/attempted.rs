//! New messages together with their first attempts, which ended before.

use kanat_model::id::MessageId;
use kanat_model::message::Status;
use rusqlite::params;

use super::append::insert_body;
use super::change::INSERT_EVENT;
use super::operation::Effect;
use super::transaction::Transaction;
use crate::NewMessage;
use crate::attempted::AttemptedRow;
use crate::change::ColumnValues;

const INSERT_ATTEMPTED: &str = "
INSERT INTO messages (seq, id, account_id, environment_id, flow_id, flow_name, flow_version,
    trigger_kind, status, accepted_as, owner, token, due_at, attempts, max_attempts,
    granted_attempts, error_kind, error_message, error_field, error_expression, received_at,
    completed_at, replay_of, batch_id, traceparent, size_bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, ?12, ?13, ?14, ?14, ?15, ?16, ?17, ?18,
    ?19, ?20, ?21, ?22, ?23, ?24)";

/// Appends messages with their first attempts. Each takes two sequence numbers: its own, and
/// that of the event at the end of the attempt.
pub(super) fn append(
    tx: &mut Transaction<'_, '_>,
    rows: &[AttemptedRow],
) -> rusqlite::Result<Effect> {
    for row in rows {
        let seq = tx.take_seq();
        let event_seq = tx.take_seq();
        AttemptedInsert {
            message: row.message(),
            seq,
            event_seq,
            columns: row.column_values(),
        }
        .insert(tx)?;
    }
    Ok(Effect::AppendedAttempted(
        u64::try_from(rows.len()).unwrap_or(u64::MAX),
    ))
}

/// Insert of a message with its first attempt, and the sequence numbers of both.
pub(super) struct AttemptedInsert<'r> {
    pub message: &'r NewMessage,
    pub seq: i64,
    /// Sequence number of the end of the attempt.
    pub event_seq: i64,
    pub columns: ColumnValues<'r>,
}

impl AttemptedInsert<'_> {
    /// Inserts the message, its bodies, and the event of the end of its attempt.
    pub fn insert(&self, tx: &Transaction<'_, '_>) -> rusqlite::Result<()> {
        let Self {
            message,
            seq,
            event_seq,
            columns,
        } = *self;
        let status = columns.status.unwrap_or(Status::Received).as_str();
        let attempts = columns.attempts.unwrap_or(0);
        let values = params![
            seq,
            message.id.as_str(),
            message.account_id.as_str(),
            message.environment_id.as_str(),
            message.flow_id.as_str(),
            message.flow_name,
            message.flow_version,
            message.trigger.as_str(),
            status,
            Status::Received.as_str(),
            event_seq,
            columns.due_at,
            attempts,
            message.max_attempts.max(1),
            columns.error_kind(),
            columns.error_message(),
            columns.error_field(),
            columns.error_expression(),
            message.received_at.as_millis(),
            columns.completed_at,
            message.replay_of.as_ref().map(MessageId::as_str),
            message.batch_id,
            message.traceparent,
            message.size_column(),
        ];
        tx.execute(INSERT_ATTEMPTED, values)?;
        insert_body(tx, seq, message)?;
        let values = params![
            event_seq,
            seq,
            columns.at,
            status,
            attempts,
            columns.due_at,
            columns.error_kind(),
            columns.error_message(),
            columns.error_field(),
            columns.error_expression(),
            columns.output,
            columns.trace,
        ];
        tx.execute(INSERT_EVENT, values)?;
        Ok(())
    }
}
