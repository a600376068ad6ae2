//! Dropping what is old, a stretch at a time, so that messages come in between.

use kanat_model::Timestamp;
use rusqlite::params;
use sqlx::{Row, SqlitePool};

use super::operation::{Effect, Work};
use super::plan;
use super::queue::Queue;
use super::transaction::Transaction;
use crate::Error;

/// Messages looked at in one transaction.
const STRETCH: i64 = 500;
/// Pages given back to the disk at a time.
const SHRINK_PAGES: u32 = 1_000;

pub(super) const NEXT_STRETCH: &str = "
SELECT min(received_at), max(seq) FROM (SELECT seq, received_at FROM messages WHERE seq > ?
    ORDER BY seq LIMIT ?)";

/// Dependents first: they find their messages by what still stands.
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

/// Ids of events are never given twice, also when the newest ones are gone.
const KEEP_LAST_SEQ: &str = "UPDATE counters SET value = max(value, ?) WHERE name = 'last_seq'";

pub(super) const DROP_KEYS: &str = "
DELETE FROM dedupe WHERE (flow_id, key) IN (SELECT flow_id, key FROM dedupe WHERE expires_at <= ?
    LIMIT 1000)";

/// Drops what was received and finished before an instant; says how many messages.
pub(super) async fn retain(
    reader: &SqlitePool,
    queue: &Queue,
    older_than: Timestamp,
) -> Result<u64, Error> {
    let begun = Timestamp::now();
    let mut dropped = 0;
    let mut after = i64::MIN;
    // Arrival times grow with the order of the log but for a little, so the first stretch without
    // an old message is the end of the old ones.
    while let Some((oldest, last)) = next_stretch(reader, after).await?
        && oldest < older_than
    {
        let from = after.saturating_add(1);
        dropped += count(
            queue
                .submit(Work::DropMessages {
                    from,
                    to: last,
                    older_than,
                })
                .await?,
        )?;
        after = last;
    }
    while count(queue.submit(Work::DropKeys { expired_at: begun }).await?)? > 0 {}
    drop_plans(reader, queue, older_than, begun).await?;
    queue.submit(Work::ForgetQuotas).await?;
    give_back(reader, queue).await?;
    Ok(dropped)
}

/// Drops plans that nothing needs any more.
async fn drop_plans(
    reader: &SqlitePool,
    queue: &Queue,
    older_than: Timestamp,
    begun: Timestamp,
) -> Result<(), Error> {
    // What was acknowledged and is in no table needs its plan too, however long ago it came.
    if let Err(error) = queue.submit(Work::Fold).await {
        tracing::warn!(%error, "retention drops no plans this time");
        return Ok(());
    }
    for (flow_id, version) in plan::unused(reader, older_than.min(begun)).await? {
        queue
            .submit(Work::DropPlan {
                flow_id,
                version,
                checked_at: begun,
            })
            .await?;
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

/// Gives free pages back until none are left, or until they grow anew because others write.
async fn give_back(reader: &SqlitePool, queue: &Queue) -> Result<(), Error> {
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

/// The oldest arrival and the last place of the next messages.
async fn next_stretch(reader: &SqlitePool, after: i64) -> Result<Option<(Timestamp, i64)>, Error> {
    let row = sqlx::query(NEXT_STRETCH)
        .bind(after)
        .bind(STRETCH)
        .fetch_one(reader)
        .await?;
    let oldest: Option<i64> = row.try_get(0)?;
    let last: Option<i64> = row.try_get(1)?;
    Ok(oldest.map(Timestamp::from_millis).zip(last))
}

async fn free_pages(reader: &SqlitePool) -> Result<i64, Error> {
    Ok(sqlx::query("PRAGMA freelist_count")
        .fetch_one(reader)
        .await?
        .try_get(0)?)
}

fn count(effect: Effect) -> Result<u64, Error> {
    effect.into_count()
}
