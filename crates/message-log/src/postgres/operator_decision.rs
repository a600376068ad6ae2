//! Decisions of an operator on a message: to retry it, or to discard it.

use kanat_database::Patience;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::append::take_key;
use super::change::release_next_of_keys;
use super::failure::CallError;
use super::options::{ANSWER_TIMEOUT, LockSpace};
use super::text::text;
use super::transaction::Transaction;
use super::{begin, keys, sequence};
use crate::operator_decision::Decision;
use crate::row::Columns;
use crate::{Error, RetryVersion, Tenant, trace};

pub(super) const FIND: &str = "
SELECT m.seq, m.status, m.attempts, m.ordering_key IS NOT NULL AS ordered, m.flow_id
FROM messages AS m
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3";

/// Looks again, and keeps others from changing it.
pub(super) const HOLD: &str = "
SELECT m.seq, m.status, m.attempts, m.ordering_key IS NOT NULL AS ordered, m.flow_id
FROM messages AS m
WHERE m.seq = $1 FOR UPDATE";

const RETRY: &str = "
UPDATE messages SET status = 'received', token = $2, owner = '', due_at = $3, completed_at = NULL,
    max_attempts = attempts + granted_attempts
WHERE seq = $1";

const SET_VERSION: &str = "UPDATE messages SET flow_version = $2, ordering_key = $3 WHERE seq = $1";

const DISCARD: &str = "
UPDATE messages SET status = 'discarded', token = $2, owner = '', due_at = NULL, completed_at = $3
    WHERE seq = $1";

const INSERT_EVENT: &str = "
INSERT INTO transitions (message, seq, at, status, attempts, due_at, error_kind, error_message,
    error_field, error_expression, trace)
SELECT seq, token, $2, status, attempts, due_at, error_kind, error_message, error_field,
    error_expression, $3
FROM messages WHERE seq = $1";

/// A message as it was found.
struct CurrentState {
    seq: i64,
    status: Status,
    attempts: u32,
    ordered: bool,
    flow_id: FlowId,
}

pub(super) async fn decide(
    workers: &PgPool,
    space: LockSpace,
    tenant: &Tenant,
    id: &MessageId,
    decision: &Decision,
) -> Result<(), CallError> {
    let mut conn = begin::write(workers, &Patience::in_place(ANSWER_TIMEOUT)).await?;
    let query = sqlx::query(FIND).bind(text(id.as_str()));
    let query = query
        .bind(text(tenant.account_id.as_str()))
        .bind(text(tenant.environment_id.as_str()));
    let not_found = || Error::NotFound(id.as_str().to_owned());
    let row = query
        .fetch_optional(&mut *conn)
        .await?
        .ok_or_else(not_found)?;
    let seen = found(&row)?;
    let ordered = seen.ordered.then_some(seen.seq);
    keys::lock_for_decision(&mut conn, space, &seen.flow_id, decision, ordered).await?;
    let row = sqlx::query(HOLD)
        .bind(seen.seq)
        .fetch_optional(&mut *conn)
        .await?;
    let mut found = found(&row.ok_or_else(not_found)?)?;
    decision.check(found.status)?;
    let taken = sequence::take(&mut conn, space, 1).await?;
    let mut tx = Transaction::new(&mut conn, taken);
    if let Decision::Retry(Some(version)) = decision {
        set_version(&mut tx, &found, id, version).await?;
        found.ordered = version.ordering_key.is_some();
    }
    write(&mut tx, &found, decision).await?;
    Ok(conn.commit().await?)
}

async fn write(
    tx: &mut Transaction<'_>,
    found: &CurrentState,
    decision: &Decision,
) -> sqlx::Result<()> {
    let event = tx.next_seq()?;
    let now = tx.now.as_millis();
    match decision {
        Decision::Retry(_) => {
            let due_at = (!found.ordered).then(|| tx.steady.as_millis().max(0));
            let query = sqlx::query(RETRY).bind(found.seq).bind(event).bind(due_at);
            query.execute(&mut *tx.conn).await?;
        }
        Decision::Discard => {
            sqlx::query(DISCARD)
                .bind(found.seq)
                .bind(event)
                .bind(now)
                .execute(&mut *tx.conn)
                .await?;
        }
    }
    if found.ordered {
        release_next_of_keys(tx, vec![found.seq]).await?;
    }
    let trace = trace::text(&[trace::record(
        tx.now,
        decision.stage(),
        "person",
        found.attempts,
    )])
    .map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    sqlx::query(INSERT_EVENT)
        .bind(found.seq)
        .bind(now)
        .bind(trace)
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

/// Puts a dead letter under another version of its flow, with the keys that the version gives it.
async fn set_version(
    tx: &mut Transaction<'_>,
    found: &CurrentState,
    id: &MessageId,
    version: &RetryVersion,
) -> sqlx::Result<()> {
    sqlx::query(SET_VERSION)
        .bind(found.seq)
        .bind(i64::from(version.flow_version))
        .bind(version.ordering_key.as_deref().map(text))
        .execute(&mut *tx.conn)
        .await?;
    match &version.dedupe_key {
        Some(dedupe) => take_key(tx, (&found.flow_id, id), dedupe, tx.now).await,
        None => Ok(()),
    }
}

fn found(row: &PgRow) -> sqlx::Result<CurrentState> {
    Ok(CurrentState {
        seq: row.number("seq")?,
        status: row.status()?,
        attempts: row.whole("attempts")?,
        ordered: row.try_get("ordered")?,
        flow_id: FlowId::new(row.try_get::<String, _>("flow_id")?),
    })
}
