//! Count of the backlog, on the index of unfinished messages.

use kanat_model::Timestamp;
use sqlx::SqlitePool;

use crate::{Backlog, Error, Waiting, row};

/// Backlog by flow. It skips from owner to owner by the index. For each owner and flow, only the
/// first `?2` due messages are read. The age is that of the oldest of them that had no attempt yet;
/// there is none if each had one.
pub(super) const BACKLOG: &str = "
WITH RECURSIVE
owners(owner) AS (
    SELECT (SELECT m.owner FROM messages AS m INDEXED BY messages_open
            WHERE m.completed_at IS NULL ORDER BY m.owner LIMIT 1)
    UNION ALL
    SELECT (SELECT m.owner FROM messages AS m INDEXED BY messages_open
            WHERE m.completed_at IS NULL AND m.owner > o.owner ORDER BY m.owner LIMIT 1)
    FROM owners AS o WHERE o.owner IS NOT NULL
),
flows(flow_id, messages, bytes) AS (
    SELECT m.flow_id, count(*), sum(m.size_bytes) FROM messages AS m INDEXED BY messages_open
    WHERE m.completed_at IS NULL GROUP BY m.flow_id
)
SELECT flows.flow_id, flows.messages, flows.bytes, (
    SELECT min(per_owner.oldest) FROM (
        SELECT (
            SELECT min(first.due_at) FROM (
                SELECT m.due_at, m.status, m.attempts FROM messages AS m INDEXED BY messages_open
                WHERE m.completed_at IS NULL AND m.owner = o.owner AND m.flow_id = flows.flow_id
                    AND m.due_at BETWEEN 0 AND ?1 ORDER BY m.due_at, m.seq LIMIT ?2) AS first
            WHERE first.attempts = 0 AND first.status IN ('received', 'processing')) AS oldest
        FROM owners AS o WHERE o.owner IS NOT NULL) AS per_owner) AS oldest
FROM flows ORDER BY flows.flow_id";

pub(super) async fn backlog(reader: &SqlitePool) -> Result<Vec<Backlog>, Error> {
    let limit = i64::try_from(Waiting::COUNT_LIMIT).unwrap_or(i64::MAX);
    let now = Timestamp::steady().as_millis();
    let rows = sqlx::query(BACKLOG)
        .bind(now)
        .bind(limit)
        .fetch_all(reader)
        .await?;
    Ok(row::all(&rows, row::backlog)?)
}
