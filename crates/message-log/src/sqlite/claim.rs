//! Claims of waiting messages. Candidates are read beside the writer, which then claims those that
//! have not changed since.

use std::collections::HashMap;

use kanat_model::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqlitePool};

use super::operation::Work;
use super::writer_handle::WriterHandle;
use crate::change::Change;
use crate::row;
use crate::{AwaitedMessages, Claim, ClaimedMessage, Lease, Result, Step, Waiting};

/// Waiting messages by owner and flow. It skips from owner to owner and from flow to flow by the
/// index, so that its time grows with the number of flows, and not with that of messages. The
/// messages of owners without a valid lease, and of the owner '', are free to claim.
pub(super) const WAITING: &str = "
WITH RECURSIVE
owners(owner) AS (
    SELECT (SELECT owner FROM messages INDEXED BY messages_open WHERE completed_at IS NULL
        ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT m.owner FROM messages AS m INDEXED BY messages_open
            WHERE m.completed_at IS NULL AND m.owner > o.owner ORDER BY m.owner LIMIT 1)
    FROM owners AS o WHERE o.owner IS NOT NULL
),
free(owner) AS (
    SELECT o.owner FROM owners AS o WHERE o.owner IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.owner = o.owner AND l.expires_at > ?1)
),
owned_flows(owner, flow_id) AS (
    SELECT f.owner, (SELECT m.flow_id FROM messages AS m INDEXED BY messages_open
                     WHERE m.completed_at IS NULL AND m.owner = f.owner ORDER BY m.flow_id LIMIT 1)
    FROM free AS f
    UNION ALL
    SELECT l.owner, (SELECT m.flow_id FROM messages AS m INDEXED BY messages_open
                     WHERE m.completed_at IS NULL AND m.owner = l.owner AND m.flow_id > l.flow_id
                     ORDER BY m.flow_id LIMIT 1)
    FROM owned_flows AS l WHERE l.flow_id IS NOT NULL
),
found(flow_id, owner, until) AS (
    SELECT flow_id, owner, CASE owner WHEN '' THEN ?1 ELSE 9223372036854775807 END
    FROM owned_flows WHERE flow_id IS NOT NULL
)
SELECT found.flow_id,
    (SELECT count(*) FROM (
        SELECT 1 FROM messages AS m INDEXED BY messages_open
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at BETWEEN 0 AND found.until LIMIT ?2)) AS due,
    (SELECT m.due_at FROM messages AS m INDEXED BY messages_open
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at BETWEEN 0 AND found.until ORDER BY m.due_at LIMIT 1) AS oldest,
    (SELECT m.due_at FROM messages AS m INDEXED BY messages_open
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at > found.until ORDER BY m.due_at LIMIT 1) AS next_due
FROM found";

/// Owners of unfinished messages without a valid lease.
pub(super) const DEAD_OWNERS: &str = "
WITH RECURSIVE owners(owner) AS (
    SELECT (SELECT owner FROM messages INDEXED BY messages_open WHERE completed_at IS NULL AND owner
        > ''
            ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT m.owner FROM messages AS m INDEXED BY messages_open
            WHERE m.completed_at IS NULL AND m.owner > o.owner ORDER BY m.owner LIMIT 1)
    FROM owners AS o WHERE o.owner IS NOT NULL
)
SELECT o.owner FROM owners AS o WHERE o.owner IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.owner = o.owner AND l.expires_at > ?)";

/// Columns of a message that can be claimed.
macro_rules! claimed_columns {
    () => {
        "m.seq, m.id, m.account_id, m.environment_id, m.flow_id, m.flow_name, m.flow_version, \
         m.trigger_kind, m.owner,
    m.token, m.due_at, m.attempts, m.max_attempts, m.ordering_key, m.received_at, m.traceparent, \
         m.size_bytes,
    b.raw_body, b.payload, b.request"
    };
}

/// Messages that an owner awaits and whose turn has come.
pub(super) const AWAITED: &str = concat!(
    "SELECT ",
    claimed_columns!(),
    "
FROM messages AS m NOT INDEXED CROSS JOIN bodies AS b ON b.seq = m.seq
WHERE m.seq IN (SELECT value FROM json_each(?)) AND m.owner = ? AND m.status = 'received'
    AND m.due_at >= 0
ORDER BY m.seq LIMIT ?"
);

/// Messages of one flow that have this owner (or, for `''`, no owner), in the order of their due
/// times, as long as the sum of their bytes is within a bound. The first one may alone be larger,
/// within a bound of its own. The bodies of the others are not read.
pub(super) const CANDIDATES: &str = concat!(
    "SELECT ",
    claimed_columns!(),
    "
FROM (
    SELECT seq, sum(size_bytes) OVER (ORDER BY due_at, seq ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT seq, due_at, size_bytes FROM messages INDEXED BY messages_open
        WHERE completed_at IS NULL AND owner = ? AND flow_id = ? AND due_at BETWEEN 0 AND ?
            AND flow_version NOT IN (SELECT value FROM json_each(?))
        ORDER BY due_at, seq LIMIT ?)
) AS due
CROSS JOIN messages AS m ON m.seq = due.seq
CROSS JOIN bodies AS b ON b.seq = m.seq
WHERE due.bytes <= ? OR (due.bytes = m.size_bytes AND m.size_bytes <= ?)
ORDER BY m.due_at, m.seq"
);

pub(super) const STEPS: &str = "SELECT name, status, output FROM steps WHERE message = ?";

pub(super) async fn waiting(reader: &SqlitePool) -> Result<Vec<Waiting>> {
    let limit = i64::try_from(Waiting::COUNT_LIMIT).unwrap_or(i64::MAX);
    let now = Timestamp::steady().as_millis();
    let rows = sqlx::query(WAITING)
        .bind(now)
        .bind(limit)
        .fetch_all(reader)
        .await?;
    Ok(row::waiting(&rows)?)
}

/// Claims messages. Calls must not overlap, because two would select the same messages.
pub(super) async fn claim(
    reader: &SqlitePool,
    writer: &WriterHandle,
    claim: Claim,
) -> Result<Vec<ClaimedMessage>> {
    let mut found = candidates(reader, &claim).await?;
    if found.is_empty() {
        return Ok(found);
    }
    let now = Timestamp::now();
    let changes = found
        .iter()
        .map(|claimed| Change::claiming(claimed, &claim.owner, now))
        .collect();
    let leases = writer.submit(Work::Claim(changes)).await?.into_claimed()?;
    let mut leases: HashMap<i64, Lease> =
        leases.into_iter().map(|lease| (lease.seq, lease)).collect();
    found.retain_mut(|claimed| match leases.remove(&claimed.lease.seq) {
        Some(lease) => {
            claimed.lease = lease;
            true
        }
        None => false,
    });
    Ok(found)
}

/// Returns the messages that can be claimed, with their present leases, those of dead owners first.
async fn candidates(reader: &SqlitePool, claim: &Claim) -> Result<Vec<ClaimedMessage>> {
    let now = Timestamp::steady().as_millis();
    let mut tx = reader.begin().await?;
    let mut owners = Vec::new();
    for row in sqlx::query(DEAD_OWNERS)
        .bind(now)
        .fetch_all(&mut *tx)
        .await?
    {
        let owner: String = row.try_get(0)?;
        // A process that was suspended for longer than its lease still runs its own messages.
        if owner != claim.owner.as_str() {
            owners.push((owner, i64::MAX));
        }
    }
    owners.push((String::new(), now));
    let mut found = Vec::new();
    for AwaitedMessages { seqs, messages } in &claim.awaited {
        let query = sqlx::query(AWAITED)
            .bind(serde_json::json!(seqs).to_string())
            .bind(claim.owner.as_str());
        for row in &query.bind(i64::from(*messages)).fetch_all(&mut *tx).await? {
            found.push(claimed(row)?);
        }
    }
    let mut memory = claim.bytes;
    for budget in &claim.budgets {
        let mut bytes = budget.bytes.min(memory);
        let mut single = budget.single_bytes.min(memory);
        for room in &budget.rooms {
            let mut left = i64::from(room.messages);
            let without = serde_json::json!(room.without_versions).to_string();
            for (owner, until) in &owners {
                if left == 0 || bytes.max(single) == 0 {
                    break;
                }
                let query = sqlx::query(CANDIDATES)
                    .bind(owner.as_str())
                    .bind(room.flow_id.as_str())
                    .bind(until);
                let query = query.bind(&without).bind(left);
                let query = query
                    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
                    .bind(i64::try_from(single).unwrap_or(i64::MAX));
                for row in &query.fetch_all(&mut *tx).await? {
                    let mut claimed = claimed(row)?;
                    claimed.steps = steps(&mut tx, claimed.lease.seq).await?;
                    left -= 1;
                    single = 0;
                    bytes = bytes.saturating_sub(claimed.stored_bytes);
                    memory = memory.saturating_sub(claimed.stored_bytes);
                    found.push(claimed);
                }
            }
        }
    }
    tx.commit().await?;
    Ok(found)
}

fn claimed(row: &SqliteRow) -> sqlx::Result<ClaimedMessage> {
    let mut claimed = row::claimed(row)?;
    claimed.set_content(row::content(row)?);
    Ok(claimed)
}

async fn steps(tx: &mut SqliteConnection, message: i64) -> Result<Vec<Step>> {
    let rows = sqlx::query(STEPS).bind(message).fetch_all(tx).await?;
    Ok(row::all(&rows, row::step)?)
}
