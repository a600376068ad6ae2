//! End of a deleted flow, whose waiting messages are discarded.

use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Failure;
use rusqlite::{Row, params};
use sqlx::SqlitePool;

use super::change;
use super::operation::Effect;
use super::transaction::Transaction;
use crate::change::{Change, nobody};
use crate::plan::END_BATCH;
use crate::{Error, Lease};

/// Messages of a flow that no node holds.
pub(super) const WAITING: &str = "
SELECT seq, id, token, attempts, ordering_key IS NOT NULL FROM messages INDEXED
    BY messages_flow_status
WHERE flow_id = ? AND status IN ('received', 'retrying', 'held') AND owner = '' LIMIT ?";

/// Existence of a message of a flow that has not ended.
pub(super) const UNFINISHED: &str = "
SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_flow_status
               WHERE flow_id = ? AND status IN ('received', 'processing', 'retrying', 'held'))";

/// Discards waiting messages of the flow, and returns their number.
pub(super) fn end_flow(
    tx: &mut Transaction<'_, '_>,
    flow_id: &FlowId,
    failure: &Failure,
) -> rusqlite::Result<Effect> {
    let limit = i64::try_from(END_BATCH).unwrap_or(i64::MAX);
    let mut statement = tx.conn.prepare_cached(WAITING)?;
    let found = statement.query_map(params![flow_id.as_str(), limit], |row| {
        discarding(row, tx, failure)
    })?;
    let changes = found.collect::<rusqlite::Result<Vec<_>>>()?;
    drop(statement);
    let mut ended = 0;
    for change in &changes {
        ended += u64::from(change::apply(tx, change)?.is_some());
    }
    Ok(Effect::Affected(ended))
}

/// Returns whether a flow has a message that has not ended.
pub(super) async fn is_unfinished(reader: &SqlitePool, flow_id: &FlowId) -> Result<bool, Error> {
    Ok(sqlx::query_scalar(UNFINISHED)
        .bind(flow_id.as_str())
        .fetch_one(reader)
        .await?)
}

fn discarding(
    row: &Row<'_>,
    tx: &Transaction<'_, '_>,
    failure: &Failure,
) -> rusqlite::Result<Change> {
    let lease = Lease {
        message_id: MessageId::new(row.get::<_, String>(1)?),
        seq: row.get(0)?,
        owner: nobody(),
        token: row.get(2)?,
        ordered: row.get(4)?,
    };
    Change::ending_flow(lease, tx.now, row.get(3)?, failure)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
