//! The end of a deleted flow: its messages that wait are discarded.

use kanat_database::Patience;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Failure;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use super::failure::CallError;
use super::options::{ANSWER_TIMEOUT, LockSpace};
use super::text::text;
use super::transaction::Transaction;
use super::{begin, change, keys, sequence};
use crate::change::{Change, nobody};
use crate::plan::END_BATCH;
use crate::row::Columns;
use crate::{FlowEnd, Lease};

/// Finds messages of a flow that no node holds.
pub(super) const WAITING: &str = "
SELECT m.seq, m.id, m.token, m.attempts, m.ordering_key IS NOT NULL AS ordered FROM messages AS m
WHERE m.flow_id = $1 AND m.status IN ('received', 'retrying', 'held') AND m.owner = '' LIMIT $2";

/// Tells whether a flow has a message that has not ended.
pub(super) const UNFINISHED: &str = "
SELECT EXISTS (SELECT 1 FROM messages AS m
               WHERE m.flow_id = $1 AND m.status IN ('received', 'processing', 'retrying',
                   'held'))";

/// A message that is to be discarded.
struct EndingMessage {
    lease: Lease,
    attempts: u32,
}

pub(super) async fn end_flow(
    workers: &PgPool,
    space: LockSpace,
    flow_id: &FlowId,
    failure: &Failure,
) -> Result<FlowEnd, CallError> {
    let mut conn = begin::write(workers, &Patience::in_place(ANSWER_TIMEOUT)).await?;
    let limit = i64::try_from(END_BATCH).unwrap_or(i64::MAX);
    let query = sqlx::query(WAITING)
        .bind(text(flow_id.as_str()))
        .bind(limit);
    let rows = query.fetch_all(&mut *conn).await?;
    let waiting = rows.iter().map(found).collect::<Result<Vec<_>, _>>()?;
    if waiting.is_empty() {
        let unfinished = sqlx::query_scalar(UNFINISHED)
            .bind(text(flow_id.as_str()))
            .fetch_one(&mut *conn);
        let held: bool = unfinished.await?;
        return Ok(if held {
            FlowEnd::Held
        } else {
            FlowEnd::Complete
        });
    }
    let ordered = waiting
        .iter()
        .filter(|found| found.lease.ordered)
        .map(|found| found.lease.seq)
        .collect();
    keys::lock_order_of(&mut conn, space, ordered).await?;
    let taken = sequence::take(&mut conn, space, waiting.len()).await?;
    let mut tx = Transaction::new(&mut conn, taken);
    let mut changes = Vec::with_capacity(waiting.len());
    for found in waiting {
        let change = Change::ending_flow(found.lease, tx.now, found.attempts, failure)?;
        changes.push(change);
    }
    let changes: Vec<_> = changes.iter().enumerate().collect();
    change::apply(&mut tx, &changes).await?;
    conn.commit().await?;
    Ok(FlowEnd::Partial)
}

fn found(row: &PgRow) -> sqlx::Result<EndingMessage> {
    let lease = Lease {
        message_id: MessageId::new(row.try_get::<String, _>("id")?),
        seq: row.try_get("seq")?,
        owner: nobody(),
        token: row.try_get("token")?,
        ordered: row.try_get("ordered")?,
    };
    Ok(EndingMessage {
        lease,
        attempts: row.whole("attempts")?,
    })
}
