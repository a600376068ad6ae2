//! Claims: waiting messages are found and taken in one transaction, which skips rows that others
//! are taking.

use std::collections::BTreeMap;

use kanat_model::Timestamp;
use sqlx::{PgConnection, PgPool, Row};

use super::columns::each;
use super::failure::{FailureKind, outward};
use super::options::{Connections, LockSpace};
use super::text::text;
use super::transaction::{Transaction, TransactionRef};
use super::{begin, change, sequence};
use crate::change::Change;
use crate::row;
use crate::{AwaitedMessages, Claim, ClaimedMessage, Error, Lease, Waiting};

/// Milliseconds since 1970 by the database's clock, by which alone leases are counted.
macro_rules! database_now {
    () => {
        "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
    };
}

pub(super) use database_now;

/// Hops from owner to owner and from flow to flow by the index, so that its time grows with the
/// flows and not with the messages. Owners without a valid lease have abandoned their messages; ''
/// is the owner of messages that no node holds.
pub(super) const WAITING: &str = concat!(
    "
WITH RECURSIVE
owners(owner) AS (
    SELECT (SELECT m.owner FROM messages AS m WHERE m.completed_at IS NULL ORDER BY m.owner LIMIT 1)
    UNION ALL
    SELECT (SELECT m.owner FROM messages AS m
            WHERE m.completed_at IS NULL AND m.owner > o.owner ORDER BY m.owner LIMIT 1)
    FROM owners AS o WHERE o.owner IS NOT NULL
),
free(owner) AS (
    SELECT o.owner FROM owners AS o WHERE o.owner IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.owner = o.owner AND l.expires_at > ",
    database_now!(),
    ")
),
owned_flows(owner, flow_id) AS (
    SELECT f.owner, (SELECT m.flow_id FROM messages AS m
                     WHERE m.completed_at IS NULL AND m.owner = f.owner ORDER BY m.flow_id LIMIT 1)
    FROM free AS f
    UNION ALL
    SELECT l.owner, (SELECT m.flow_id FROM messages AS m
                     WHERE m.completed_at IS NULL AND m.owner = l.owner AND m.flow_id > l.flow_id
                     ORDER BY m.flow_id LIMIT 1)
    FROM owned_flows AS l WHERE l.flow_id IS NOT NULL
),
found(flow_id, owner, until) AS (
    SELECT l.flow_id, l.owner, CASE l.owner WHEN '' THEN $1 ELSE 9223372036854775807 END
    FROM owned_flows AS l WHERE l.flow_id IS NOT NULL
)
SELECT found.flow_id,
    (SELECT count(*) FROM (
        SELECT 1 FROM messages AS m
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at BETWEEN 0 AND found.until LIMIT $2) AS first) AS due,
    (SELECT m.due_at FROM messages AS m
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at BETWEEN 0 AND found.until ORDER BY m.due_at LIMIT 1) AS oldest,
    (SELECT m.due_at FROM messages AS m
        WHERE m.completed_at IS NULL AND m.owner = found.owner AND m.flow_id = found.flow_id
            AND m.due_at > found.until ORDER BY m.due_at LIMIT 1) AS next_due
FROM found"
);

/// Owners of unfinished messages without a valid lease.
pub(super) const DEAD_OWNERS: &str = concat!(
    "
WITH RECURSIVE owners(owner) AS (
    SELECT (SELECT m.owner FROM messages AS m WHERE m.completed_at IS NULL AND m.owner > ''
        ORDER BY m.owner LIMIT 1)
    UNION ALL
    SELECT (SELECT m.owner FROM messages AS m
            WHERE m.completed_at IS NULL AND m.owner > o.owner ORDER BY m.owner LIMIT 1)
    FROM owners AS o WHERE o.owner IS NOT NULL
)
SELECT o.owner FROM owners AS o WHERE o.owner IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM leases AS l WHERE l.owner = o.owner AND l.expires_at > ",
    database_now!(),
    ")"
);

/// Columns of a message that can be claimed.
macro_rules! claimed_columns {
    () => {
        "m.seq, m.id, m.account_id, m.environment_id, m.flow_id, m.flow_name, m.flow_version, \
         m.trigger_kind, m.owner,
    m.token, m.due_at, m.attempts, m.max_attempts, m.ordering_key, m.received_at, m.traceparent, \
         m.size_bytes"
    };
}

/// Messages that an owner awaits, those whose turn has come. `$3` and `$4`, the first and the last
/// of them, leave out the days before and after.
pub(super) const AWAITED: &str = concat!(
    "SELECT ",
    claimed_columns!(),
    "
FROM messages AS m
WHERE m.seq = ANY($1) AND m.seq BETWEEN $3 AND $4 AND m.owner = $2 AND m.status = 'received'
    AND m.due_at >= 0
ORDER BY m.seq LIMIT $5
FOR UPDATE SKIP LOCKED"
);

/// Messages of one flow with one owner.
pub(super) const CANDIDATES: &str = concat!(
    "SELECT ",
    claimed_columns!(),
    "
FROM messages AS m
WHERE m.completed_at IS NULL AND m.owner = $1 AND m.flow_id = $2 AND m.due_at BETWEEN 0 AND $3
    AND m.flow_version <> ALL($5)
ORDER BY m.due_at, m.seq LIMIT $4
FOR UPDATE SKIP LOCKED"
);

pub(super) const BODIES: &str = "
SELECT b.seq, b.raw_body, b.payload, b.request FROM bodies AS b WHERE b.seq = ANY($1) AND b.seq
    BETWEEN $2 AND $3";

pub(super) const STEPS: &str = "
SELECT s.message, s.name, s.status, s.output FROM steps AS s
WHERE s.message = ANY($1) AND s.message BETWEEN $2 AND $3 ORDER BY s.message, s.name";

/// Failure of a claim.
pub(super) enum ClaimError {
    Aborted(Error),
    /// The connection broke at the commit.
    InDoubt {
        transaction: TransactionRef,
        claimed: Vec<ClaimedMessage>,
    },
}

pub(super) async fn waiting(reader: &PgPool) -> sqlx::Result<Vec<Waiting>> {
    let limit = i64::try_from(Waiting::COUNT_LIMIT).unwrap_or(i64::MAX);
    let now = Timestamp::steady().as_millis();
    let rows = sqlx::query(WAITING)
        .bind(now)
        .bind(limit)
        .fetch_all(reader)
        .await?;
    row::waiting(&rows)
}

pub(super) async fn claim(
    workers: &PgPool,
    connecting: &Connections,
    claim: &Claim,
) -> Result<Vec<ClaimedMessage>, ClaimError> {
    let aborted = |error: sqlx::Error| ClaimError::Aborted(outward(error));
    let patience = connecting.patience();
    let mut tx = begin::write(workers, &patience).await.map_err(aborted)?;
    let taken = take(&mut tx, connecting.space, claim);
    let (transaction, claimed) = patience.answered(taken).await.map_err(aborted)?;
    if claimed.is_empty() {
        patience.answered(tx.rollback()).await.map_err(aborted)?;
        return Ok(claimed);
    }
    match patience.answered(tx.commit()).await {
        Ok(()) => Ok(claimed),
        Err(error) if FailureKind::from_error(&error) == FailureKind::Broken => {
            Err(ClaimError::InDoubt {
                transaction,
                claimed,
            })
        }
        Err(error) => Err(aborted(error)),
    }
}

async fn take(
    conn: &mut PgConnection,
    space: LockSpace,
    claim: &Claim,
) -> sqlx::Result<(TransactionRef, Vec<ClaimedMessage>)> {
    let mut found = candidates(conn, claim).await?;
    if found.is_empty() {
        return Ok((
            TransactionRef {
                id: String::new(),
                marker: None,
            },
            found,
        ));
    }
    add_contents(conn, &mut found).await?;
    let taken = sequence::take(conn, space, found.len()).await?;
    let mut tx = Transaction::new(conn, taken);
    let now = tx.now;
    let changes: Vec<Change> = found
        .iter()
        .map(|claimed| Change::claiming(claimed, &claim.owner, now))
        .collect();
    let numbered: Vec<(usize, &Change)> = changes.iter().enumerate().collect();
    let mut leases: Vec<Option<Lease>> = vec![None; found.len()];
    for (at, lease) in change::apply(&mut tx, &numbered).await? {
        leases[at] = lease;
    }
    let claimed = found
        .into_iter()
        .zip(leases)
        .filter_map(|(claimed, lease)| {
            Some(ClaimedMessage {
                lease: lease?,
                ..claimed
            })
        });
    Ok((tx.into_ref(), claimed.collect()))
}

/// Returns messages that can be claimed, with their present leases: messages of dead nodes first.
async fn candidates(conn: &mut PgConnection, claim: &Claim) -> sqlx::Result<Vec<ClaimedMessage>> {
    let now = Timestamp::steady().as_millis();
    let mut owners = Vec::new();
    for row in sqlx::query(DEAD_OWNERS).fetch_all(&mut *conn).await? {
        let owner: String = row.try_get(0)?;
        // Its own are no orphans: a process that stood still for longer than its lease works on
        // them yet.
        if owner != claim.owner.as_str() {
            owners.push((owner, i64::MAX));
        }
    }
    owners.push((String::new(), now));
    let mut found = Vec::new();
    for AwaitedMessages { seqs, messages } in &claim.awaited {
        let query = sqlx::query(AWAITED)
            .bind(seqs)
            .bind(text(claim.owner.as_str()));
        let query = query
            .bind(seqs.iter().min())
            .bind(seqs.iter().max())
            .bind(i64::from(*messages));
        for row in &query.fetch_all(&mut *conn).await? {
            found.push(row::claimed(row)?);
        }
    }
    let mut memory = claim.bytes;
    for budget in &claim.budgets {
        let mut bytes = budget.bytes.min(memory);
        let mut single = budget.single_bytes.min(memory);
        for room in &budget.rooms {
            let mut left = i64::from(room.messages);
            let without = each(&room.without_versions, |version| i64::from(*version));
            for (owner, until) in &owners {
                if left == 0 || bytes.max(single) == 0 {
                    break;
                }
                let query = sqlx::query(CANDIDATES)
                    .bind(owner)
                    .bind(text(room.flow_id.as_str()))
                    .bind(until)
                    .bind(left);
                let query = query.bind(&without);
                // Bodies are read afterwards. The rows beyond the bound stay locked until then.
                for row in &query.fetch_all(&mut *conn).await? {
                    let claimed = row::claimed(row)?;
                    if claimed.stored_bytes > bytes.max(single) {
                        break;
                    }
                    left -= 1;
                    single = 0;
                    bytes = bytes.saturating_sub(claimed.stored_bytes);
                    memory = memory.saturating_sub(claimed.stored_bytes);
                    found.push(claimed);
                }
            }
        }
    }
    Ok(found)
}

/// Adds bodies and steps.
async fn add_contents(conn: &mut PgConnection, found: &mut [ClaimedMessage]) -> sqlx::Result<()> {
    let seqs: Vec<i64> = found.iter().map(|claimed| claimed.lease.seq).collect();
    let first = seqs.iter().min().copied();
    let last = seqs.iter().max().copied();
    let mut by_seq: BTreeMap<i64, &mut ClaimedMessage> = found
        .iter_mut()
        .map(|claimed| (claimed.lease.seq, claimed))
        .collect();
    for row in sqlx::query(BODIES)
        .bind(&seqs)
        .bind(first)
        .bind(last)
        .fetch_all(&mut *conn)
        .await?
    {
        if let Some(claimed) = by_seq.get_mut(&row.try_get("seq")?) {
            claimed.set_content(row::content(&row)?);
        }
    }
    for row in sqlx::query(STEPS)
        .bind(&seqs)
        .bind(first)
        .bind(last)
        .fetch_all(&mut *conn)
        .await?
    {
        if let Some(claimed) = by_seq.get_mut(&row.try_get("message")?) {
            claimed.steps.push(row::step(&row)?);
        }
    }
    Ok(())
}
