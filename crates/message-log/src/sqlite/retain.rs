//! Retention: old messages are dropped in bounded batches, so that other operations run in between.

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use rusqlite::{Params, params};
use sqlx::{Row, SqlitePool};

use super::operation::{Effect, Task, Work};
use super::transaction::Transaction;
use super::writer_handle::WriterHandle;
use super::{plan, quota};
use crate::{Cursor, Result, row};

/// Number of messages that one transaction checks.
const RETENTION_BATCH_SIZE: i64 = 500;
/// Number of pages that one incremental vacuum returns to the file system.
const VACUUM_PAGES: u32 = 1_000;

pub(super) const NEXT_BATCH: &str = "
SELECT min(received_at), max(seq) FROM (SELECT seq, received_at FROM messages WHERE seq > ?
    ORDER BY seq LIMIT ?)";

/// Finds messages of a flow after a position, in the order of arrival; `seq` breaks ties.
pub(super) const NEXT_OF_FLOW: &str = "
SELECT seq, received_at FROM messages INDEXED BY messages_flow
WHERE flow_id = ? AND (received_at, seq) > (?, ?) AND received_at < ?
ORDER BY received_at, seq LIMIT ?";

/// Returns the statements that delete messages by a condition. The rows that belong to the messages
/// go first: the messages have to be there to find them.
macro_rules! deletes {
    ($condition:literal) => {
        [
            concat!(
                "DELETE FROM steps WHERE message IN (SELECT seq FROM messages WHERE ",
                $condition,
                ")"
            ),
            concat!(
                "DELETE FROM transitions WHERE message IN (SELECT seq FROM messages WHERE ",
                $condition,
                ")"
            ),
            concat!(
                "DELETE FROM bodies WHERE seq IN (SELECT seq FROM messages WHERE ",
                $condition,
                ")"
            ),
            concat!("DELETE FROM messages WHERE ", $condition),
        ]
    };
}

pub(super) type Deletes = [&'static str; 4];

pub(super) const DROP_BATCH: Deletes =
    deletes!("seq BETWEEN ?1 AND ?2 AND received_at < ?3 AND completed_at < ?3");

pub(super) const DROP_LISTED: Deletes =
    deletes!("seq IN (SELECT value FROM json_each(?1)) AND completed_at < ?2");

/// Keeps the last sequence number, so that none is taken twice after its event was dropped.
const KEEP_LAST_SEQ: &str = "UPDATE counters SET value = max(value, ?) WHERE name = 'last_seq'";

pub(super) const DROP_DEDUPE_KEYS: &str = "
DELETE FROM dedupe WHERE (flow_id, key) IN (SELECT flow_id, key FROM dedupe WHERE expires_at <= ?
    LIMIT 1000)";

/// Drops messages that were received and finished before an instant, and returns their number.
pub(super) async fn retain(
    reader: &SqlitePool,
    writer: &WriterHandle,
    older_than: Timestamp,
) -> Result<u64> {
    let begun = Timestamp::now();
    let mut dropped = 0;
    let mut after = i64::MIN;
    // Arrival times nearly follow the order of the log, so that the first batch without an old
    // message ends the scan.
    while let Some((oldest, last)) = next_batch(reader, after).await?
        && oldest < older_than
    {
        let from = after.saturating_add(1);
        let bounds = [from, last, older_than.as_millis()];
        let messages = Task::new(move |tx| drop_messages(tx, DROP_BATCH, bounds));
        let messages = writer.submit(messages.deleting_rows()).await?;
        dropped += messages.into_count()?;
        after = last;
    }
    let keys = || Task::new(move |tx| drop_dedupe_keys(tx, begun)).deleting_rows();
    while writer.submit(keys()).await?.into_count()? > 0 {}
    drop_plans(reader, writer, older_than, begun).await?;
    let quotas = Task::new(|tx| quota::purge_expired(tx));
    writer.submit(quotas.deleting_rows()).await?;
    vacuum(reader, writer).await?;
    Ok(dropped)
}

/// Drops messages of these flows that were received and finished before an instant, and returns
/// their number.
pub(super) async fn retain_flows(
    reader: &SqlitePool,
    writer: &WriterHandle,
    flows: &[FlowId],
    older_than: Timestamp,
) -> Result<u64> {
    let mut dropped = 0;
    let bound = older_than.as_millis();
    for flow in flows {
        let mut after = Cursor::FIRST;
        loop {
            let batch = next_of_flow(reader, flow, after, older_than).await?;
            let Some(last) = batch.last() else {
                break;
            };
            after = *last;
            let numbers: Vec<i64> = batch.iter().map(|cursor| cursor.seq).collect();
            let numbers = serde_json::json!(numbers).to_string();
            let messages = Task::new(move |tx| drop_messages(tx, DROP_LISTED, (&numbers, bound)));
            let messages = writer.submit(messages.deleting_rows()).await?;
            dropped += messages.into_count()?;
        }
    }
    Ok(dropped)
}

/// Drops plans that no message needs.
async fn drop_plans(
    reader: &SqlitePool,
    writer: &WriterHandle,
    older_than: Timestamp,
    begun: Timestamp,
) -> Result<()> {
    // An old message that only the journal has needs its plan too.
    if let Err(error) = writer.submit(Work::Flush).await {
        tracing::warn!(%error, "retention drops no plans this time");
        return Ok(());
    }
    for (flow_id, version) in plan::unused(reader, older_than.min(begun)).await? {
        let plan = Task::new(move |tx| plan::drop(tx, &flow_id, version, begun));
        writer.submit(plan).await?;
    }
    Ok(())
}

fn drop_messages(
    tx: &Transaction<'_, '_>,
    [steps, transitions, bodies, messages]: Deletes,
    values: impl Params + Clone,
) -> rusqlite::Result<Effect> {
    for statement in [steps, transitions, bodies] {
        tx.execute(statement, values.clone())?;
    }
    let dropped = tx.execute(messages, values)?;
    tx.execute(KEEP_LAST_SEQ, params![tx.last_seq()])?;
    Ok(Effect::Affected(dropped as u64))
}

pub(super) fn drop_dedupe_keys(
    tx: &Transaction<'_, '_>,
    expired_at: Timestamp,
) -> rusqlite::Result<Effect> {
    let dropped = tx.execute(DROP_DEDUPE_KEYS, params![expired_at.as_millis()])?;
    Ok(Effect::Affected(dropped as u64))
}

/// Returns free pages to the file system until none are left, or their number does not fall.
async fn vacuum(reader: &SqlitePool, writer: &WriterHandle) -> Result<()> {
    let mut free = free_pages(reader).await?;
    while free > 0 {
        writer
            .submit(Work::IncrementalVacuum {
                pages: VACUUM_PAGES,
            })
            .await?;
        let left = free_pages(reader).await?;
        if left >= free {
            break;
        }
        free = left;
    }
    writer.submit(Work::TruncateWal).await?;
    Ok(())
}

/// Returns the oldest arrival and the last sequence number of the next batch.
async fn next_batch(reader: &SqlitePool, after: i64) -> Result<Option<(Timestamp, i64)>> {
    let row = sqlx::query(NEXT_BATCH)
        .bind(after)
        .bind(RETENTION_BATCH_SIZE)
        .fetch_one(reader)
        .await?;
    let oldest: Option<i64> = row.try_get(0)?;
    let last: Option<i64> = row.try_get(1)?;
    Ok(oldest.map(Timestamp::from_millis).zip(last))
}

/// Returns the places of the next messages of a flow that were received before an instant.
async fn next_of_flow(
    reader: &SqlitePool,
    flow: &FlowId,
    after: Cursor,
    older_than: Timestamp,
) -> Result<Vec<Cursor>> {
    let rows = sqlx::query(NEXT_OF_FLOW)
        .bind(flow.as_str())
        .bind(after.received_at.as_millis())
        .bind(after.seq)
        .bind(older_than.as_millis())
        .bind(RETENTION_BATCH_SIZE)
        .fetch_all(reader)
        .await?;
    Ok(row::all(&rows, row::cursor)?)
}

async fn free_pages(reader: &SqlitePool) -> Result<i64> {
    Ok(sqlx::query("PRAGMA freelist_count")
        .fetch_one(reader)
        .await?
        .try_get(0)?)
}
