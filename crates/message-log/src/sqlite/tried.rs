//! New messages together with their first attempts.

use kanat_model::id::MessageId;
use kanat_model::message::{Failure, Status};
use rusqlite::params;

use super::append::INSERT_BODY;
use super::change::INSERT_EVENT;
use super::operation::Effect;
use super::transaction::Transaction;
use crate::tried::Row;

const INSERT_MESSAGE: &str = "
INSERT INTO messages (seq, id, account_id, environment_id, flow_id, flow_name, flow_version, trigger_kind, status,
    accepted_as, owner, token, due_at, attempts, max_attempts, granted_attempts, error_kind, error_message, error_field,
    error_expression, received_at, completed_at, replay_of, batch_id, traceparent)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, ?12, ?13, ?14, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
    ?23)";

/// Two events of each message: that it came in, and what its attempt came to.
pub(super) fn append(tx: &mut Transaction<'_, '_>, rows: &[Row]) -> rusqlite::Result<Effect> {
    for row in rows {
        let (seq, event) = (tx.take_seq(), tx.take_seq());
        insert(tx, row, seq, event)?;
    }
    Ok(Effect::Tried(u64::try_from(rows.len()).unwrap_or(u64::MAX)))
}

fn insert(tx: &Transaction<'_, '_>, row: &Row, seq: i64, event: i64) -> rusqlite::Result<()> {
    let message = row.message();
    let failure = row.failure();
    let kind = failure.map(|failure| failure.kind.as_str());
    let text = failure.map(|failure| failure.message.as_str());
    let field = failure.and_then(|failure: &Failure| failure.field.as_deref());
    let expression = failure.and_then(|failure: &Failure| failure.expression.as_deref());
    let values = params![
        seq,
        message.id.as_str(),
        message.account_id.as_str(),
        message.environment_id.as_str(),
        message.flow_id.as_str(),
        message.flow_name,
        message.flow_version,
        message.trigger.as_str(),
        row.status().as_str(),
        Status::Received.as_str(),
        event,
        row.due_at(),
        row.attempts(),
        message.max_attempts.max(1),
        kind,
        text,
        field,
        expression,
        message.received_at.as_millis(),
        row.completed_at(),
        message.replay_of.as_ref().map(MessageId::as_str),
        message.batch_id,
        message.traceparent,
    ];
    tx.execute(INSERT_MESSAGE, values)?;
    let bodies = params![seq, message.raw_body.as_ref(), message.payload.as_deref(), message.request.as_ref()];
    tx.execute(INSERT_BODY, bodies)?;
    let status = row.status().as_str();
    let output = row.output();
    let values = params![
        event,
        seq,
        row.at(),
        status,
        row.attempts(),
        row.due_at(),
        kind,
        text,
        field,
        expression,
        output,
        row.trace
    ];
    tx.execute(INSERT_EVENT, values)?;
    Ok(())
}
