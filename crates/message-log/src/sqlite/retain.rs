//! Retention: old messages are dropped in bounded stretches, so that other operations run in
//! between.

use kanat_model::Timestamp;
use rusqlite::params;
use sqlx::{Row, SqlitePool};

use super::operation::{Effect, Task, Work};
use super::queue::Queue;
use super::transaction::Transaction;
use super::{plan, quota};
use crate::Result;

/// Number of messages that one transaction checks.
const STRETCH: i64 = 500;
/// Number of pages that go back to the disk at a time.
const SHRINK_PAGES: u32 = 1_000;

pub(super) const NEXT_STRETCH: &str = "
SELECT min(received_at), max(seq) FROM (SELECT seq, received_at FROM messages WHERE seq > ?
    ORDER BY seq LIMIT ?)";

/// Deletes the rows that belong to messages, which have to be there to find them.
pub(super) const DROP_DEPENDENTS: &[&str] = &[
    "DELETE FROM steps WHERE message IN (SELECT seq FROM messages
        WHERE seq BETWEEN ?1 AND ?2 AND received_at < ?3 AND completed_at < ?3)",
    "DELETE FROM transitions WHERE message IN (SELECT seq FROM messages
        WHERE seq BETWEEN ?1 AND ?2 AND received_at < ?3 AND completed_at < ?3)",
    "DELETE FROM bodies WHERE seq IN (SELECT seq FROM messages
        WHERE seq BETWEEN ?1 AND ?2 AND received_at < ?3 AND completed_at < ?3)",
];

pub(super) const DROP_MESSAGES: &str =
    "DELETE FROM messages WHERE seq BETWEEN ?1 AND ?2 AND received_at < ?3 AND completed_at < ?3";

/// Keeps the last sequence number, which is never taken twice, also when its event is dropped.
const KEEP_LAST_SEQ: &str = "UPDATE counters SET value = max(value, ?) WHERE name = 'last_seq'";

pub(super) const DROP_KEYS: &str = "
DELETE FROM dedupe WHERE (flow_id, key) IN (SELECT flow_id, key FROM dedupe WHERE expires_at <= ?
    LIMIT 1000)";

/// Drops messages that were received and finished before an instant, and returns their number.
pub(super) async fn retain(
    reader: &SqlitePool,
    queue: &Queue,
    older_than: Timestamp,
) -> Result<u64> {
    let begun = Timestamp::now();
    let mut dropped = 0;
    let mut after = i64::MIN;
    // Arrival times nearly follow the order of the log, so that the first stretch without an old
    // message ends the scan.
    while let Some((oldest, last)) = next_stretch(reader, after).await?
        && oldest < older_than
    {
        let from = after.saturating_add(1);
        let messages = Task::new(move |tx| drop_messages(tx, from, last, older_than));
        let messages = queue.submit(messages.making_room()).await?;
        dropped += messages.into_count()?;
        after = last;
    }
    let keys = || Task::new(move |tx| drop_keys(tx, begun)).making_room();
    while queue.submit(keys()).await?.into_count()? > 0 {}
    drop_plans(reader, queue, older_than, begun).await?;
    let quotas = Task::new(|tx| quota::forget(tx));
    queue.submit(quotas.making_room()).await?;
    give_back(reader, queue).await?;
    Ok(dropped)
}

/// Drops plans that no message needs.
async fn drop_plans(
    reader: &SqlitePool,
    queue: &Queue,
    older_than: Timestamp,
    begun: Timestamp,
) -> Result<()> {
    // An old message that only the journal has needs its plan too.
    if let Err(error) = queue.submit(Work::Flush).await {
        tracing::warn!(%error, "retention drops no plans this time");
        return Ok(());
    }
    for (flow_id, version) in plan::unused(reader, older_than.min(begun)).await? {
        let plan = Task::new(move |tx| plan::drop(tx, &flow_id, version, begun));
        queue.submit(plan).await?;
    }
    Ok(())
}

pub(super) fn drop_messages(
    tx: &Transaction<'_, '_>,
    from: i64,
    to: i64,
    older_than: Timestamp,
) -> rusqlite::Result<Effect> {
    let bound = older_than.as_millis();
    for statement in DROP_DEPENDENTS {
        tx.execute(statement, params![from, to, bound])?;
    }
    let dropped = tx.execute(DROP_MESSAGES, params![from, to, bound])?;
    tx.execute(KEEP_LAST_SEQ, params![tx.last_seq()])?;
    Ok(Effect::Count(dropped as u64))
}

pub(super) fn drop_keys(
    tx: &Transaction<'_, '_>,
    expired_at: Timestamp,
) -> rusqlite::Result<Effect> {
    let dropped = tx.execute(DROP_KEYS, params![expired_at.as_millis()])?;
    Ok(Effect::Count(dropped as u64))
}

/// Gives free pages back to the disk until there are none, or more than before.
async fn give_back(reader: &SqlitePool, queue: &Queue) -> Result<()> {
    let mut free = free_pages(reader).await?;
    while free > 0 {
        queue
            .submit(Work::Shrink {
                pages: SHRINK_PAGES,
            })
            .await?;
        let left = free_pages(reader).await?;
        if left >= free {
            break;
        }
        free = left;
    }
    queue.submit(Work::Truncate).await?;
    Ok(())
}

/// Returns the oldest arrival and the last sequence number of the next stretch.
async fn next_stretch(reader: &SqlitePool, after: i64) -> Result<Option<(Timestamp, i64)>> {
    let row = sqlx::query(NEXT_STRETCH)
        .bind(after)
        .bind(STRETCH)
        .fetch_one(reader)
        .await?;
    let oldest: Option<i64> = row.try_get(0)?;
    let last: Option<i64> = row.try_get(1)?;
    Ok(oldest.map(Timestamp::from_millis).zip(last))
}

async fn free_pages(reader: &SqlitePool) -> Result<i64> {
    Ok(sqlx::query("PRAGMA freelist_count")
        .fetch_one(reader)
        .await?
        .try_get(0)?)
}
