//! From rows to messages.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::{Error, Message};

/// What does not change with a message's state; `m` is `messages`, `b` is `bodies`.
macro_rules! fixed_columns {
    () => {
        "m.seq AS message_seq, m.id, m.account_id, m.environment_id, m.flow_id, m.flow_name, \
         m.flow_version,
         m.trigger_kind, m.max_attempts, m.received_at, m.batch_id, m.replay_of, m.ordering_key, \
         m.traceparent,
         coalesce(b.payload, b.raw_body) AS payload"
    };
}

/// What stands in the row of `messages` now.
macro_rules! present_columns {
    () => {
        "m.status, m.attempts, m.due_at, m.completed_at, m.error_kind, m.error_message,
         m.error_field, m.error_expression,
         (SELECT t.output FROM transitions AS t WHERE t.message = m.seq AND t.output IS NOT NULL
            ORDER BY t.seq DESC LIMIT 1) AS output"
    };
}

pub(super) use {fixed_columns, present_columns};

pub(super) fn message(row: &SqliteRow) -> Result<Message, Error> {
    let status = status(row)?;
    Ok(Message {
        id: MessageId::new(row.try_get::<String, _>("id")?),
        seq: row.try_get("message_seq")?,
        account_id: AccountId::new(row.try_get::<String, _>("account_id")?),
        environment_id: EnvironmentId::new(row.try_get::<String, _>("environment_id")?),
        flow_id: FlowId::new(row.try_get::<String, _>("flow_id")?),
        flow_name: row.try_get("flow_name")?,
        flow_version: row.try_get("flow_version")?,
        status,
        trigger: trigger(row)?,
        payload: bytes(row, "payload")?,
        output: row
            .try_get::<Option<Vec<u8>>, _>("output")?
            .map(Bytes::from),
        attempts: row.try_get("attempts")?,
        max_attempts: row.try_get("max_attempts")?,
        next_attempt_at: instant(row, "due_at")?
            .filter(|_| status == Status::Retrying)
            .map(Timestamp::to_wall),
        error: failure(row)?,
        received_at: Timestamp::from_millis(row.try_get("received_at")?),
        completed_at: instant(row, "completed_at")?,
        batch_id: row.try_get("batch_id")?,
        replay_of: row
            .try_get::<Option<String>, _>("replay_of")?
            .map(MessageId::new),
        ordering_key: row.try_get("ordering_key")?,
        traceparent: row.try_get("traceparent")?,
    })
}

pub(super) fn trigger(row: &SqliteRow) -> Result<Trigger, Error> {
    let text: &str = row.try_get("trigger_kind")?;
    Trigger::parse(text).ok_or_else(|| unreadable("trigger", text))
}

pub(super) fn bytes(row: &SqliteRow, column: &str) -> Result<Bytes, Error> {
    Ok(Bytes::from(row.try_get::<Vec<u8>, _>(column)?))
}

fn status(row: &SqliteRow) -> Result<Status, Error> {
    let text: &str = row.try_get("status")?;
    Status::parse(text).ok_or_else(|| unreadable("status", text))
}

fn instant(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>, Error> {
    Ok(row
        .try_get::<Option<i64>, _>(column)?
        .map(Timestamp::from_millis))
}

fn failure(row: &SqliteRow) -> Result<Option<Failure>, Error> {
    let Some(kind) = row.try_get::<Option<&str>, _>("error_kind")? else {
        return Ok(None);
    };
    Ok(Some(Failure {
        kind: ErrorKind::parse(kind).ok_or_else(|| unreadable("error kind", kind))?,
        message: row
            .try_get::<Option<String>, _>("error_message")?
            .unwrap_or_default(),
        field: row.try_get("error_field")?,
        expression: row.try_get("error_expression")?,
    }))
}

fn unreadable(what: &str, text: &str) -> Error {
    Error::Other(format!("a row has the unknown {what} {text:?}"))
}
