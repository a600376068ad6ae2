//! Changes of state, many at a time: what claims and settlements write. Each adds an event to the
//! table `transitions` (historic name: events).

use std::collections::HashSet;

use kanat_model::message::Status;
use sqlx::Row;

use super::columns::bind_each;
use super::commit_marker::CommitMarker;
use super::text::optional;
use super::transaction::Transaction;
use crate::Lease;
use crate::change::{Change, ColumnValues, ErrorChange};

/// Changes messages that still have the owner and the token with which the changes were decided.
/// The token becomes the event of the change, so that a second change with the former token has no
/// effect. The id excludes messages of a restored database, whose sequence has gone back as well;
/// `|| ''` keeps the planner from the index on it. `$1`, the first of the messages, excludes
/// earlier days.
pub(super) const CHANGE: &str = "
WITH changed AS (
    UPDATE messages AS m SET
        token = v.event,
        owner = v.to_owner,
        status = coalesce(v.status, CASE WHEN m.attempts = 0 THEN 'received' ELSE 'retrying' END),
        attempts = coalesce(v.attempts, m.attempts),
        due_at = v.due_at,
        completed_at = v.completed_at,
        error_kind = CASE WHEN v.keep THEN m.error_kind ELSE v.error_kind END,
        error_message = CASE WHEN v.keep THEN m.error_message ELSE v.error_message END,
        error_field = CASE WHEN v.keep THEN m.error_field ELSE v.error_field END,
        error_expression = CASE WHEN v.keep THEN m.error_expression ELSE v.error_expression END
    FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::boolean[], $12::text[], $13::text[],
        $14::text[], $15::text[], $16::bigint[], $17::bytea[], $18::text[], $19::text[])
        AS v(seq, token, owner, event, to_owner, status, attempts, due_at, completed_at, keep,
            error_kind, error_message, error_field, error_expression, at, output, trace, id)
    WHERE m.seq = v.seq AND m.id || '' = v.id AND m.token = v.token AND m.owner = v.owner AND m.seq
        >= $1
    RETURNING m.seq, m.token, v.at, m.status, m.attempts, m.due_at, m.error_kind, m.error_message,
        m.error_field, m.error_expression, v.output, v.trace
)
INSERT INTO transitions (message, seq, at, status, attempts, due_at, error_kind, error_message,
    error_field, error_expression, output, trace)
SELECT * FROM changed RETURNING seq";

/// Makes the next message of a key due, once none before it is unfinished. `$1` are messages that
/// have left the head of their keys, which are locked.
pub(super) const RELEASE_NEXT: &str = "
UPDATE messages AS m SET due_at = $2 FROM (
    SELECT (SELECT n.seq FROM messages AS n
            WHERE n.flow_id = k.flow_id AND n.ordering_key = k.ordering_key AND n.completed_at
                IS NULL
                AND n.due_at IS NULL
            ORDER BY n.due_at, n.seq LIMIT 1) AS seq
    FROM (
        SELECT DISTINCT d.flow_id, d.ordering_key FROM unnest($1::bigint[]) AS v(seq)
        CROSS JOIN LATERAL (SELECT f.flow_id, f.ordering_key FROM messages AS f WHERE f.seq = v.seq
            OFFSET 0) AS d
        WHERE d.ordering_key IS NOT NULL
    ) AS k
    WHERE (
        SELECT true FROM messages AS h
        WHERE h.flow_id = k.flow_id AND h.ordering_key = k.ordering_key AND h.completed_at IS NULL
            AND h.due_at >= 0
        LIMIT 1) IS NULL
    OFFSET 0
) AS next
WHERE m.seq = next.seq";

/// A change and the sequence number of its event.
struct NumberedChange<'c> {
    event_seq: i64,
    index: usize,
    change: &'c Change,
    columns: ColumnValues<'c>,
}

/// Applies changes. Returns for each the lease that it granted, or `None` if it had no effect.
pub(super) async fn apply(
    tx: &mut Transaction<'_>,
    changes: &[(usize, &Change)],
) -> sqlx::Result<Vec<(usize, Option<Lease>)>> {
    let mut numbered = Vec::with_capacity(changes.len());
    for &(index, change) in changes {
        numbered.push(NumberedChange {
            event_seq: tx.next_seq()?,
            index,
            change,
            columns: change.column_values(),
        });
    }
    // Rows are locked in the order of the messages, by every transaction.
    numbered.sort_by_key(|numbered| numbered.change.message_seq);
    let Some(first) = numbered.first() else {
        return Ok(Vec::new());
    };
    let effective = write(tx, first.change.message_seq, &numbered).await?;
    let ended: Vec<i64> = numbered
        .iter()
        .filter(|numbered| {
            numbered.change.releases_ordering_key() && effective.contains(&numbered.event_seq)
        })
        .map(|numbered| numbered.change.message_seq)
        .collect();
    release_next_of_keys(tx, ended).await?;
    if let Some(written) = numbered
        .iter()
        .find(|numbered| effective.contains(&numbered.event_seq))
    {
        let NumberedChange {
            event_seq: seq,
            change,
            ..
        } = *written;
        tx.marker = Some(CommitMarker::Event {
            message: change.message_seq,
            seq,
            at: change.at,
        });
    }
    let lease = |n: &NumberedChange<'_>| {
        effective
            .contains(&n.event_seq)
            .then(|| n.change.lease(n.event_seq))
    };
    Ok(numbered
        .iter()
        .map(|numbered| (numbered.index, lease(numbered)))
        .collect())
}

/// Makes the next messages of ordering keys due, after messages of these keys have ended or were
/// released without a due time.
pub(super) async fn release_next_of_keys(
    tx: &mut Transaction<'_>,
    messages: Vec<i64>,
) -> sqlx::Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    sqlx::query(RELEASE_NEXT)
        .bind(messages)
        .bind(tx.steady.as_millis().max(0))
        .execute(&mut *tx.conn)
        .await?;
    Ok(())
}

/// Gives the events of the changes that took effect.
async fn write(
    tx: &mut Transaction<'_>,
    first: i64,
    rows: &[NumberedChange<'_>],
) -> sqlx::Result<HashSet<i64>> {
    let query = bind_each!(sqlx::query(CHANGE).bind(first), rows, |n| [
        n.change.message_seq,
        n.change.from_token,
        n.change.from_owner.as_str(),
        n.event_seq,
        n.change.to_owner.as_str(),
        n.change.status.map(Status::as_str),
        n.change.attempts.map(i64::from),
        n.columns.due_at,
        n.columns.completed_at,
        matches!(n.change.error, ErrorChange::Keep),
        n.columns.error_kind(),
        optional(n.columns.error_message()),
        optional(n.columns.error_field()),
        optional(n.columns.error_expression()),
        n.columns.at,
        n.columns.output,
        n.columns.trace,
        n.change.message_id.as_str(),
    ]);
    let rows = query.fetch_all(&mut *tx.conn).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
