//! The outputs of steps that succeeded, many at a time.

use std::collections::{HashMap, HashSet};

use sqlx::Row;

use super::columns::{bind_each, each};
use super::commit_marker::CommitMarker;
use super::text::text;
use super::transaction::Transaction;
use crate::{LeasedWriteOutcome, StepCheckpoint};

/// Finds the outputs that are not fenced. As for a change, the id of the message is part of it. No
/// other node can claim the messages before the transaction ends.
pub(super) const HELD: &str = "
SELECT v.number
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[]) AS v(number, seq,
    owner, token, id)
CROSS JOIN LATERAL (
    SELECT true FROM messages AS m
    WHERE m.seq = v.seq AND m.id || '' = v.id AND m.owner = v.owner AND m.token = v.token FOR
        SHARE) AS held";

pub(super) const SAVE: &str = "
INSERT INTO steps (message, name, status, output)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bytea[])
ON CONFLICT (message, name) DO UPDATE SET status = excluded.status, output = excluded.output";

/// Writes the outputs that are not fenced.
pub(super) async fn checkpoint(
    tx: &mut Transaction<'_>,
    checkpoints: &[(usize, &StepCheckpoint)],
) -> sqlx::Result<Vec<(usize, LeasedWriteOutcome)>> {
    if checkpoints.is_empty() {
        return Ok(Vec::new());
    }
    let held = held(tx, checkpoints).await?;
    let good = |index: &usize| held.contains(&i64::try_from(*index).unwrap_or(-1));
    // One statement does not write a row twice: of two outputs of one step, the later one.
    let kept: HashMap<(i64, &str), &StepCheckpoint> = checkpoints
        .iter()
        .filter(|(index, _)| good(index))
        .map(|(_, checkpoint)| {
            (
                (checkpoint.lease.seq, checkpoint.name.as_str()),
                *checkpoint,
            )
        })
        .collect();
    let mut kept: Vec<&StepCheckpoint> = kept.into_values().collect();
    kept.sort_by(|one, other| (one.lease.seq, &one.name).cmp(&(other.lease.seq, &other.name)));
    if let Some(first) = kept.first() {
        tx.marker = Some(CommitMarker::Step {
            message: first.lease.seq,
            name: text(&first.name).into_owned(),
        });
        let query = bind_each!(sqlx::query(SAVE), &kept, |checkpoint| [
            checkpoint.lease.seq,
            text(&checkpoint.name),
            i64::from(checkpoint.status),
            checkpoint.output.as_ref(),
        ]);
        query.execute(&mut *tx.conn).await?;
    }
    let outcome = |index: &usize| {
        if good(index) {
            LeasedWriteOutcome::Done
        } else {
            LeasedWriteOutcome::Fenced
        }
    };
    Ok(checkpoints
        .iter()
        .map(|(index, _)| (*index, outcome(index)))
        .collect())
}

async fn held(
    tx: &mut Transaction<'_>,
    checkpoints: &[(usize, &StepCheckpoint)],
) -> sqlx::Result<HashSet<i64>> {
    // Rows are locked in the order of the messages, by every transaction.
    let mut checkpoints = checkpoints.to_vec();
    checkpoints.sort_by_key(|(_, checkpoint)| checkpoint.lease.seq);
    let rows = sqlx::query(HELD)
        .bind(each(&checkpoints, |(index, _)| {
            i64::try_from(*index).unwrap_or(-1)
        }))
        .bind(each(&checkpoints, |(_, checkpoint)| checkpoint.lease.seq))
        .bind(each(&checkpoints, |(_, checkpoint)| {
            checkpoint.lease.owner.as_str()
        }))
        .bind(each(&checkpoints, |(_, checkpoint)| checkpoint.lease.token))
        .bind(each(&checkpoints, |(_, checkpoint)| {
            checkpoint.lease.message_id.as_str()
        }))
        .fetch_all(&mut *tx.conn)
        .await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
