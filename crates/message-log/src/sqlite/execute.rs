//! Execution of a batch of operations in one transaction, in this order: pending writes of the
//! journal, outputs of steps, settlements and claims, other operations, new messages. So a new
//! message finds its ordering key free if its predecessor ends in the same batch.

use super::failpoints;
use super::inbox::Operation;
use super::journal::PendingWrites;
use super::operation::{Effect, Work};
use super::options::CommitDurability;
use super::statements::Statements;
use super::transaction::{self, Transaction};
use super::{append, attempted, change, step};
use crate::{Lease, LeasedWriteOutcome, NewMessage};

/// Results of a committed batch.
pub(super) struct Execution {
    /// Effects of the operations, in their order.
    pub effects: Vec<Effect>,
    /// Last sequence number that was taken.
    pub last_seq: i64,
}

/// Applies the pending writes and executes all operations, or does nothing of both.
pub(super) fn execute(
    statements: &Statements<'_>,
    pending: Option<&PendingWrites>,
    operations: &[Operation],
    last_seq: i64,
    durability: CommitDurability,
) -> rusqlite::Result<Execution> {
    let execution = transaction::run(statements, last_seq, durability, |tx| {
        if let Some(pending) = pending {
            pending.apply(tx)?;
        }
        let effects = apply(tx, operations)?;
        failpoints::before_commit(operations);
        if let Some(pending) = pending {
            pending.hit_failpoint_before_commit();
        }
        Ok(Execution {
            effects,
            last_seq: tx.last_seq(),
        })
    })?;
    failpoints::after_commit(operations);
    if let Some(pending) = pending {
        pending.hit_failpoint_after_commit();
    }
    Ok(execution)
}

fn apply(tx: &mut Transaction<'_, '_>, operations: &[Operation]) -> rusqlite::Result<Vec<Effect>> {
    let mut effects: Vec<Effect> = operations.iter().map(|_| Effect::Done).collect();
    let mut appends: Vec<(usize, &NewMessage)> = Vec::new();
    let mut others = Vec::new();
    for (operation, effect) in operations.iter().zip(&mut effects) {
        if let Work::StoreStep(checkpoint) = &operation.work {
            *effect = Effect::LeasedWrite(step::checkpoint(tx, checkpoint)?);
        }
    }
    for (index, operation) in operations.iter().enumerate() {
        match &operation.work {
            Work::Append(message) => appends.push((index, message.as_ref())),
            Work::StoreStep(_) => {}
            Work::Settle(change) => {
                let settled = change::apply(tx, change)?.is_some();
                effects[index] = Effect::Settled(if settled {
                    LeasedWriteOutcome::Done
                } else {
                    LeasedWriteOutcome::Fenced
                });
            }
            Work::Claim(claimed) => {
                let leases: Result<Vec<Option<Lease>>, _> = claimed
                    .iter()
                    .map(|change| change::apply(tx, change))
                    .collect();
                effects[index] = Effect::Claimed(leases?.into_iter().flatten().collect());
            }
            other => others.push((index, other)),
        }
    }
    for (index, work) in others {
        effects[index] = run_other(tx, work)?;
    }
    for (index, message) in appends {
        effects[index] = Effect::Appended(append::append(tx, message)?);
    }
    Ok(effects)
}

/// Writes some pages, for which the write-ahead log needs room.
const PROBE: &str = "INSERT OR REPLACE INTO probe (only_row, body) VALUES (1, randomblob(32768))";

fn run_other(tx: &mut Transaction<'_, '_>, work: &Work) -> rusqlite::Result<Effect> {
    match work {
        Work::AppendAttempted(rows) => attempted::append(tx, rows),
        Work::Task(task) => task.run(tx),
        Work::Probe => {
            tx.execute(PROBE, ())?;
            Ok(Effect::Done)
        }
        Work::Append(_)
        | Work::StoreStep(_)
        | Work::Settle(_)
        | Work::Claim(_)
        | Work::Flush
        | Work::IncrementalVacuum { .. }
        | Work::TruncateWal
        | Work::Close => Ok(Effect::Done),
    }
}
