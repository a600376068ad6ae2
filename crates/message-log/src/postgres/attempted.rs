//! New messages together with their first attempts, many at a time.

use kanat_model::id::MessageId;
use kanat_model::message::Status;

use super::columns::{bind_each, each};
use super::commit_marker::CommitMarker;
use super::text::{optional, text};
use super::transaction::Transaction;
use crate::NewMessage;
use crate::attempted::AttemptedRow;
use crate::change::ColumnValues;

pub(super) const INSERT: &str = "
WITH v AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::text[], $8::bigint[], $9::text[], $10::text[], $11::bigint[], $12::bigint[],
        $13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[],
        $19::bigint[], $20::bigint[], $21::text[], $22::text[], $23::text[], $24::bytea[],
        $25::bytea[], $26::bytea[], $27::bytea[], $28::text[], $30::bigint[])
        AS v(seq, event, id, account_id, environment_id, flow_id, flow_name, flow_version,
            trigger_kind, status, due_at, attempts, max_attempts, error_kind, error_message,
            error_field, error_expression, received_at, at, completed_at, replay_of, batch_id,
            traceparent, raw_body, payload, request, output, trace, size_bytes)
), bodies AS (
    INSERT INTO bodies (seq, raw_body, payload, request) SELECT v.seq, v.raw_body, v.payload,
        v.request FROM v
), transitions AS (
    INSERT INTO transitions (message, seq, at, status, attempts, due_at, error_kind, error_message,
        error_field, error_expression, output, trace)
    SELECT v.seq, v.event, v.at, v.status, v.attempts, v.due_at, v.error_kind, v.error_message,
        v.error_field, v.error_expression, v.output, v.trace
    FROM v
)
INSERT INTO messages (seq, token, id, account_id, environment_id, flow_id, flow_name, flow_version,
    trigger_kind, status, accepted_as, owner, due_at, attempts, max_attempts, granted_attempts,
    error_kind, error_message, error_field, error_expression, received_at, completed_at, replay_of,
    batch_id, traceparent, size_bytes)
SELECT v.seq, v.event, v.id, v.account_id, v.environment_id, v.flow_id, v.flow_name, v.flow_version,
    v.trigger_kind, v.status, $29, '', v.due_at, v.attempts, v.max_attempts, v.max_attempts,
    v.error_kind, v.error_message, v.error_field, v.error_expression, v.received_at, v.completed_at,
    v.replay_of, v.batch_id, v.traceparent, v.size_bytes
FROM v";

/// Insert of a message with its first attempt, and the sequence numbers of both.
struct AttemptedInsert<'r> {
    seq: i64,
    /// Sequence number of the end of the attempt.
    event_seq: i64,
    message: &'r NewMessage,
    columns: ColumnValues<'r>,
}

pub(super) async fn append(tx: &mut Transaction<'_>, rows: &[&AttemptedRow]) -> sqlx::Result<()> {
    let mut numbered = Vec::with_capacity(rows.len());
    for &row in rows {
        numbered.push(AttemptedInsert {
            seq: tx.next_seq()?,
            event_seq: tx.next_seq()?,
            message: row.message(),
            columns: row.column_values(),
        });
    }
    let Some(first) = numbered.first() else {
        return Ok(());
    };
    tx.marker = Some(CommitMarker::Message {
        seq: first.seq,
        id: first.message.id.clone(),
    });
    let rows = &numbered;
    let query = bind_each!(sqlx::query(INSERT), rows, |n| [
        n.seq,
        n.event_seq,
        text(n.message.id.as_str()),
        text(n.message.account_id.as_str()),
        text(n.message.environment_id.as_str()),
        text(n.message.flow_id.as_str()),
        text(&n.message.flow_name),
        i64::from(n.message.flow_version),
        n.message.trigger.as_str(),
        n.columns.status.unwrap_or(Status::Received).as_str(),
        n.columns.due_at,
        n.columns.attempts.map_or(0, i64::from),
        i64::from(n.message.max_attempts.max(1)),
        n.columns.error_kind(),
        optional(n.columns.error_message()),
        optional(n.columns.error_field()),
        optional(n.columns.error_expression()),
        n.message.received_at.as_millis(),
        n.columns.at,
        n.columns.completed_at,
        optional(n.message.replay_of.as_ref().map(MessageId::as_str)),
        optional(n.message.batch_id.as_deref()),
        optional(n.message.traceparent.as_deref()),
        n.message.raw_body.as_ref(),
        n.message.payload.as_deref(),
        n.message.request.as_ref(),
        n.columns.output,
        n.columns.trace,
    ]);
    query
        .bind(Status::Received.as_str())
        .bind(each(rows, |n| n.message.size_column()))
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}
