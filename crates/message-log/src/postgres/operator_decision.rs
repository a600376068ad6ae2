//! Decisions of an operator on a message: to retry it, or to discard it.

use kanat_database::Patience;
use kanat_model::id::MessageId;
use kanat_model::message::Status;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::change::advance;
use super::failure::CallError;
use super::options::{ANSWER_TIMEOUT, LockSpace};
use super::text::text;
use super::transaction::Transaction;
use super::{begin, keys, sequence};
use crate::operator_decision::Decision;
use crate::row::Columns;
use crate::{Error, Tenant, trace};

pub(super) const FIND: &str = "
SELECT m.seq, m.status, m.attempts, m.ordering_key IS NOT NULL AS ordered FROM messages AS m
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3";

/// Looks again, and keeps others from changing it.
pub(super) const HOLD: &str = "
SELECT m.seq, m.status, m.attempts, m.ordering_key IS NOT NULL AS ordered FROM messages AS m
WHERE m.seq = $1 FOR UPDATE";

const RETRY: &str = "
UPDATE messages SET status = 'received', token = $2, owner = '', due_at = $3, completed_at = NULL,
    flow_version = coalesce($4, flow_version), max_attempts = attempts + granted_attempts
WHERE seq = $1";

const DISCARD: &str = "
UPDATE messages SET status = 'discarded', token = $2, owner = '', due_at = NULL, completed_at = $3
    WHERE seq = $1";

const RECORD: &str = "
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
}

pub(super) async fn decide(
    workers: &PgPool,
    space: LockSpace,
    tenant: &Tenant,
    id: &MessageId,
    decision: Decision,
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
    if seen.ordered {
        keys::lock_order_of(&mut conn, space, vec![seen.seq]).await?;
    }
    let row = sqlx::query(HOLD)
        .bind(seen.seq)
        .fetch_optional(&mut *conn)
        .await?;
    let found = found(&row.ok_or_else(not_found)?)?;
    decision.check(found.status)?;
    let taken = sequence::take(&mut conn, space, 1).await?;
    let mut tx = Transaction::new(&mut conn, taken);
    write(&mut tx, &found, decision).await?;
    Ok(conn.commit().await?)
}

async fn write(
    tx: &mut Transaction<'_>,
    found: &CurrentState,
    decision: Decision,
) -> sqlx::Result<()> {
    let event = tx.next_seq()?;
    let now = tx.now.as_millis();
    match decision {
        Decision::Retry { flow_version } => {
            let due_at = (!found.ordered).then(|| tx.steady.as_millis().max(0));
            let query = sqlx::query(RETRY)
                .bind(found.seq)
                .bind(event)
                .bind(due_at)
                .bind(flow_version.map(i64::from));
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
        advance(tx, vec![found.seq]).await?;
    }
    let trace = trace::text(&[trace::record(
        tx.now,
        decision.stage(),
        "person",
        found.attempts,
    )])
    .map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    sqlx::query(RECORD)
        .bind(found.seq)
        .bind(now)
        .bind(trace)
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

fn found(row: &PgRow) -> sqlx::Result<CurrentState> {
    Ok(CurrentState {
        seq: row.number("seq")?,
        status: row.status()?,
        attempts: row.whole("attempts")?,
        ordered: row.try_get("ordered")?,
    })
}
