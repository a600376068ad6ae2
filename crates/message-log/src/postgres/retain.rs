//! Dropping what is old. Days that are over are dropped as a whole, when nothing of them is young
//! enough to stay; the few messages of them that are unfinished, or ended late, are kept and the
//! room of all others is given back. Of yesterday and today single messages are dropped, a batch
//! at a time.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, PgPool, Row};

use super::day::{self, Day, TABLES};
use super::failure::FailureKind;
use super::options::LockSpace;
use super::text::text;
use super::{lease, plan, quota, sequence};
use crate::{Cursor, row};

/// Messages looked at in one transaction.
const RETENTION_BATCH_SIZE: i64 = 500;
/// Time by which clocks of nodes may be ahead of the clock of the database.
const CLOCK_SLACK: Duration = Duration::from_secs(600);
/// Most messages that are kept of a day that is dropped. A day with more waits until fewer are
/// left.
const MAX_KEPT: usize = 100_000;
/// Attempts to drop a day that is in use.
const MAX_ATTEMPTS: u32 = 20;
/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

pub(super) const NEXT_BATCH: &str = "
SELECT min(s.received_at), max(s.seq) FROM (
    SELECT m.seq, m.received_at FROM messages AS m WHERE m.seq > $1 AND m.seq < $2 ORDER BY m.seq
        LIMIT $3) AS s";

/// Messages of a flow after a place in their order of arrival, which has a tie broken by `seq`.
pub(super) const NEXT_OF_FLOW: &str = "
SELECT m.seq, m.received_at FROM messages AS m
WHERE m.flow_id = $1 AND (m.received_at, m.seq) > ($2, $3) AND m.received_at < $4
ORDER BY m.received_at, m.seq LIMIT $5";

/// Returns the statement that drops finished messages between two sequence numbers, by one more
/// condition.
macro_rules! drop_messages {
    ($condition:literal) => {
        concat!(
            "
WITH old AS (
    SELECT m.seq FROM messages AS m
    WHERE m.seq BETWEEN $1 AND $2 AND m.received_at < $3 AND m.completed_at < $3",
            $condition,
            " ORDER BY m.seq FOR UPDATE
), dropped_steps AS (
    DELETE FROM steps WHERE message = ANY(ARRAY(SELECT seq FROM old)) AND message BETWEEN $1 AND $2
), dropped_transitions AS (
    DELETE FROM transitions WHERE message = ANY(ARRAY(SELECT seq FROM old)) AND message BETWEEN $1
        AND $2
), dropped_bodies AS (
    DELETE FROM bodies WHERE seq = ANY(ARRAY(SELECT seq FROM old)) AND seq BETWEEN $1 AND $2
)
DELETE FROM messages WHERE seq = ANY(ARRAY(SELECT seq FROM old)) AND seq BETWEEN $1 AND $2"
        )
    };
}

pub(super) const DROP_MESSAGES: &str = drop_messages!("");
pub(super) const DROP_LISTED: &str = drop_messages!(" AND m.seq = ANY($4)");

pub(super) const DROP_DEDUPE_KEYS: &str = "
DELETE FROM dedupe AS d USING (
    SELECT o.flow_id, o.key FROM dedupe AS o WHERE o.expires_at <= $1 ORDER BY o.expires_at
        LIMIT 1000
    FOR UPDATE SKIP LOCKED) AS old
WHERE d.flow_id = old.flow_id AND d.key = old.key AND d.expires_at <= $1";

/// Limits the wait for a lock, since other transactions queue after one that waits.
const SHORT_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '500ms'";
/// For the one look at all messages of a day.
const READ_ALL: &str = "SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = '15min'";
const LOCK: &str = "SELECT pg_advisory_xact_lock($1, 0)";
const FORGET: &str = "DELETE FROM days WHERE day = $1";
const KEEP: &str = "INSERT INTO kept SELECT * FROM unnest($1::bigint[])";

/// Drops what was received and finished before an instant; says how many messages.
pub(super) async fn retain(
    workers: &PgPool,
    space: LockSpace,
    older_than: Timestamp,
) -> sqlx::Result<u64> {
    let begun = Timestamp::now();
    let dropped = drop_days(workers, space, older_than).await?;
    drop_dedupe_keys(workers, begun).await?;
    plan::drop_unused(workers, older_than.min(begun)).await?;
    quota::purge_expired(workers, begun).await?;
    lease::drop_gone(workers).await?;
    Ok(dropped)
}

/// Drops messages of these flows that were received and finished before an instant, whatever their
/// days are; says how many. The room of a day is given back when the day is dropped.
pub(super) async fn retain_flows(
    workers: &PgPool,
    flows: &[FlowId],
    older_than: Timestamp,
) -> sqlx::Result<u64> {
    let mut conn = workers.acquire().await?;
    let mut dropped = 0;
    for flow in flows {
        let mut after = Cursor::FIRST;
        loop {
            let batch = next_of_flow(&mut conn, flow, after, older_than).await?;
            let Some(last) = batch.last() else {
                break;
            };
            after = *last;
            let numbers: Vec<i64> = batch.iter().map(|cursor| cursor.seq).collect();
            let query = sqlx::query(DROP_LISTED)
                .bind(numbers.iter().min())
                .bind(numbers.iter().max())
                .bind(older_than.as_millis())
                .bind(&numbers);
            dropped += query.execute(&mut *conn).await?.rows_affected();
        }
    }
    Ok(dropped)
}

async fn next_of_flow(
    conn: &mut PgConnection,
    flow: &FlowId,
    after: Cursor,
    older_than: Timestamp,
) -> sqlx::Result<Vec<Cursor>> {
    let rows = sqlx::query(NEXT_OF_FLOW)
        .bind(text(flow.as_str()))
        .bind(after.received_at.as_millis())
        .bind(after.seq)
        .bind(older_than.as_millis())
        .bind(RETENTION_BATCH_SIZE)
        .fetch_all(conn)
        .await?;
    row::all(&rows, row::cursor)
}

async fn drop_days(workers: &PgPool, space: LockSpace, older_than: Timestamp) -> sqlx::Result<u64> {
    let mut conn = workers.acquire().await?;
    let today = day::today(&mut conn).await?;
    let bound = older_than.before(CLOCK_SLACK).as_millis();
    let mut dropped = 0;
    for day in day::all(&mut conn).await? {
        if day.number + 1 >= today {
            dropped += drop_rows(&mut conn, &day, older_than).await?;
        } else if day.end_ms() <= bound {
            dropped += drop_day(&mut conn, workers, space, &day, older_than).await?;
        }
    }
    Ok(dropped)
}

async fn drop_rows(conn: &mut PgConnection, day: &Day, older_than: Timestamp) -> sqlx::Result<u64> {
    let end = Day::new(day.number + 1).first_seq();
    let mut dropped = 0;
    let mut after = day.first_seq() - 1;
    // Arrival times grow with the order of the log but for a little, so the first batch without
    // an old message is the end of the old ones.
    while let Some((oldest, last)) = next_batch(conn, after, end).await?
        && oldest < older_than
    {
        let query = sqlx::query(DROP_MESSAGES)
            .bind(after + 1)
            .bind(last)
            .bind(older_than.as_millis());
        dropped += query.execute(&mut *conn).await?.rows_affected();
        after = last;
    }
    Ok(dropped)
}

/// The oldest arrival and the last place of the next messages.
async fn next_batch(
    conn: &mut PgConnection,
    after: i64,
    end: i64,
) -> sqlx::Result<Option<(Timestamp, i64)>> {
    let row = sqlx::query(NEXT_BATCH)
        .bind(after)
        .bind(end)
        .bind(RETENTION_BATCH_SIZE)
        .fetch_one(conn)
        .await?;
    let oldest: Option<i64> = row.try_get(0)?;
    let last: Option<i64> = row.try_get(1)?;
    Ok(oldest.map(Timestamp::from_millis).zip(last))
}

/// Drops a day, or what is old of it. Its messages are looked at while others go on; only to drop
/// it are they kept away, and then nothing may have happened to its messages since the look.
async fn drop_day(
    conn: &mut PgConnection,
    workers: &PgPool,
    space: LockSpace,
    day: &Day,
    older_than: Timestamp,
) -> sqlx::Result<u64> {
    for _ in 0..MAX_ATTEMPTS {
        let seen = sequence::horizon(workers, space).await?.readable;
        let (all, kept) = look(conn, day, older_than).await?;
        let dropped = all - u64::try_from(kept.len()).unwrap_or(all);
        let empty = kept.is_empty();
        if !empty && (dropped == 0 || kept.len() > MAX_KEPT || all < 2 * (all - dropped)) {
            return Ok(0);
        }
        match cut(conn, space, day, seen, &kept).await {
            Ok(true) => return Ok(dropped),
            Ok(false) => {}
            Err(error) if FailureKind::from_error(&error) == FailureKind::Contended => {}
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    tracing::warn!(
        day = %day.suffix,
        "an old day of the message log is in use, it is dropped another time",
    );
    Ok(0)
}

/// How many messages there are, and which of them stay.
async fn look(
    conn: &mut PgConnection,
    day: &Day,
    older_than: Timestamp,
) -> sqlx::Result<(u64, Vec<i64>)> {
    let messages = day.table("messages");
    let mut tx = conn.begin().await?;
    sqlx::raw_sql(READ_ALL).execute(&mut *tx).await?;
    let text = format!(
        "SELECT count(*), array_agg(seq ORDER BY seq)
            FILTER (WHERE completed_at IS NULL OR completed_at >= {0} OR received_at >= {0})
                FROM {messages}",
        older_than.as_millis()
    );
    let row = sqlx::raw_sql(AssertSqlSafe(text))
        .fetch_one(&mut *tx)
        .await?;
    tx.commit().await?;
    let all: i64 = row.try_get(0)?;
    let kept: Option<Vec<i64>> = row.try_get(1)?;
    Ok((u64::try_from(all).unwrap_or(0), kept.unwrap_or_default()))
}

/// Makes what is kept all that there is, unless something happened to the day's messages after
/// `seen`.
async fn cut(
    conn: &mut PgConnection,
    space: LockSpace,
    day: &Day,
    seen: i64,
    kept: &[i64],
) -> sqlx::Result<bool> {
    let mut tx = conn.begin().await?;
    sqlx::raw_sql(SHORT_LOCK_TIMEOUT).execute(&mut *tx).await?;
    sqlx::query(LOCK).bind(space.keys).execute(&mut *tx).await?;
    let partitions = TABLES.map(|table| day.table(table)).join(", ");
    // A partition goes with a change of the table that it is part of.
    let locked = if kept.is_empty() {
        TABLES.join(", ")
    } else {
        partitions.clone()
    };
    let lock = format!("LOCK TABLE {locked} IN ACCESS EXCLUSIVE MODE");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut *tx).await?;
    let later = format!(
        "SELECT EXISTS (SELECT 1 FROM {} WHERE seq > {seen})",
        day.table("transitions")
    );
    if sqlx::raw_sql(AssertSqlSafe(later))
        .fetch_one(&mut *tx)
        .await?
        .try_get::<bool, _>(0)?
    {
        tx.rollback().await?;
        return Ok(false);
    }
    if kept.is_empty() {
        sqlx::raw_sql(AssertSqlSafe(format!("DROP TABLE {partitions}")))
            .execute(&mut *tx)
            .await?;
        sqlx::query(FORGET)
            .bind(day.number)
            .execute(&mut *tx)
            .await?;
    } else {
        sqlx::raw_sql("CREATE TEMPORARY TABLE kept (seq BIGINT PRIMARY KEY) ON COMMIT DROP")
            .execute(&mut *tx)
            .await?;
        sqlx::query(KEEP)
            .persistent(false)
            .bind(kept)
            .execute(&mut *tx)
            .await?;
        for (table, key) in TABLES.iter().zip(["seq", "seq", "message", "message"]) {
            let partition = day.table(table);
            let text = format!(
                "CREATE TEMPORARY TABLE kept_{table} ON COMMIT DROP AS
                    SELECT p.* FROM kept JOIN {partition} AS p ON p.{key} = kept.seq;
                 TRUNCATE {partition};
                 INSERT INTO {partition} SELECT * FROM kept_{table}"
            );
            sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *tx).await?;
        }
    }
    tx.commit().await?;
    Ok(true)
}

async fn drop_dedupe_keys(workers: &PgPool, expired_at: Timestamp) -> sqlx::Result<()> {
    let bound = expired_at.as_millis();
    while sqlx::query(DROP_DEDUPE_KEYS)
        .bind(bound)
        .execute(workers)
        .await?
        .rows_affected()
        > 0
    {}
    Ok(())
}
