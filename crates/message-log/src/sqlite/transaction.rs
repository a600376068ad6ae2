//! One transaction: what was answered before it first, then what ends a hold on a message, then
//! single operations, then what comes in. So a message that frees its ordering key lets one that
//! arrives with it be run at once.

use kanat_model::Timestamp;
use rusqlite::{Connection, Params};

use super::intake::Unfolded;
use super::operation::{Effect, Operation, Work};
use super::statements::Statements;
use super::{append, change, completed, end, lease, person, plan, poll, quota, retain, step};
use crate::{Lease, NewMessage, SettleOutcome};

/// A transaction under way.
pub(super) struct Transaction<'t, 'c> {
    pub conn: &'c Connection,
    pub now: Timestamp,
    /// The same instant by the clock of waits.
    pub steady: Timestamp,
    statements: &'t Statements<'c>,
    last_seq: i64,
}

impl Transaction<'_, '_> {
    /// The next place in the log's order.
    pub fn take_seq(&mut self) -> i64 {
        self.last_seq += 1;
        self.last_seq
    }

    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    /// Runs a statement that stays prepared; says how many rows changed.
    pub fn execute(&self, statement: &'static str, values: impl Params) -> rusqlite::Result<usize> {
        self.statements.execute(statement, values)
    }
}

/// What a commit is worth when the machine loses power; a crash of the process takes back none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commit {
    /// It is on disk.
    OnDisk,
    /// It is on disk with the next one that has to be, or when the write-ahead log is moved.
    Soon,
}

/// Does all operations or none, after all of `unfolded`. Gives an effect for each, and the last
/// place taken.
pub(super) fn run(
    statements: &Statements<'_>,
    unfolded: Option<&Unfolded>,
    operations: &[Operation],
    last_seq: i64,
    commit: Commit,
) -> (Result<Vec<Effect>, rusqlite::Error>, i64) {
    let conn = statements.conn();
    let now = Timestamp::now();
    let steady = Timestamp::steady();
    let mut tx = Transaction {
        conn,
        now,
        steady,
        statements,
        last_seq,
    };
    let begun = statements
        .sync(commit)
        .and_then(|()| tx.execute("BEGIN IMMEDIATE", ()));
    let folded = begun.and_then(|_| unfolded.map_or(Ok(()), |unfolded| unfolded.fold(&tx)));
    let effects = folded.and_then(|()| apply(&mut tx, operations));
    before_commit(operations);
    kanat_failpoint::hit_for_each("fold.before_commit", || unfolded.map_or(0, Unfolded::len));
    let result = effects.and_then(|effects| tx.execute("COMMIT", ()).map(|_| effects));
    after_commit(operations);
    kanat_failpoint::hit_for_each("fold.after_commit", || unfolded.map_or(0, Unfolded::len));
    // SQLite rolls some failures back by itself.
    if result.is_err()
        && !conn.is_autocommit()
        && let Err(error) = tx.execute("ROLLBACK", ())
    {
        tracing::error!(%error, "a failed transaction could not be rolled back");
    }
    (result, tx.last_seq)
}

fn apply(tx: &mut Transaction<'_, '_>, operations: &[Operation]) -> rusqlite::Result<Vec<Effect>> {
    let mut effects: Vec<Effect> = operations.iter().map(|_| Effect::Done).collect();
    let mut appends: Vec<(usize, &NewMessage)> = Vec::new();
    let mut singles = Vec::new();
    for (operation, effect) in operations.iter().zip(&mut effects) {
        if let Work::Checkpoint(checkpoint) = &operation.work {
            *effect = Effect::Settled(step::checkpoint(tx, checkpoint)?);
        }
    }
    for (at, operation) in operations.iter().enumerate() {
        match &operation.work {
            Work::Append(message) => appends.push((at, message.as_ref())),
            Work::Checkpoint(_) => {}
            Work::Settle(change) => {
                let settled = change::apply(tx, change)?.is_some();
                effects[at] = Effect::Settled(if settled {
                    SettleOutcome::Done
                } else {
                    SettleOutcome::Fenced
                });
            }
            Work::Claim(claimed) => {
                let leases: Result<Vec<Option<Lease>>, _> = claimed
                    .iter()
                    .map(|change| change::apply(tx, change))
                    .collect();
                effects[at] = Effect::Claimed(leases?.into_iter().flatten().collect());
            }
            single => singles.push((at, single)),
        }
    }
    for (at, work) in singles {
        effects[at] = single(tx, work)?;
    }
    for (at, message) in appends {
        effects[at] = Effect::Appended(append::append(tx, message)?);
    }
    Ok(effects)
}

/// The points at which tests let a process die with these operations not yet on disk,
pub(super) fn before_commit(operations: &[Operation]) {
    kanat_failpoint::hit_for_each("accept.before_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.before_commit", || settles(operations));
}

/// and with them there.
pub(super) fn after_commit(operations: &[Operation]) {
    kanat_failpoint::hit_for_each("accept.after_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.after_commit", || settles(operations));
}

fn appends(operations: &[Operation]) -> usize {
    operations
        .iter()
        .filter(|operation| matches!(operation.work, Work::Append(_)))
        .count()
}

fn settles(operations: &[Operation]) -> usize {
    operations
        .iter()
        .filter(|operation| matches!(operation.work, Work::Settle(_)))
        .count()
}

/// Some pages, which the write-ahead log has to find room for.
const PROBE: &str = "INSERT OR REPLACE INTO probe (only_row, body) VALUES (1, randomblob(32768))";

fn single(tx: &mut Transaction<'_, '_>, work: &Work) -> rusqlite::Result<Effect> {
    match work {
        Work::AppendCompleted(rows) => completed::append(tx, rows),
        Work::Retry {
            tenant,
            id,
            flow_version,
        } => person::retry(tx, tenant, id, *flow_version),
        Work::Discard { tenant, id } => person::discard(tx, tenant, id),
        Work::EndFlow { flow_id, failure } => end::end_flow(tx, flow_id, failure),
        Work::OpenLease {
            owner,
            node,
            ttl_ms,
        } => lease::open(tx, owner, node, *ttl_ms),
        Work::RenewLease(owner) => lease::renew(tx, owner),
        Work::HandBack(owner) => lease::hand_back(tx, owner),
        Work::SavePlans(plans) => plan::save(tx, plans),
        Work::ClaimPoll(claim) => poll::claim(tx, claim),
        Work::KeepPoll(kept) => poll::keep(tx, kept),
        Work::NoteRecords { flow_id, records } => poll::note(tx, flow_id, records),
        Work::ForgetRecords { flow_id, before } => poll::forget(tx, flow_id, *before),
        Work::Exchange(exchange) => quota::exchange(tx, exchange),
        Work::Probe => {
            tx.execute(PROBE, ())?;
            Ok(Effect::Done)
        }
        Work::ForgetQuotas => quota::forget(tx),
        Work::ForgetPoll(flow_id) => poll::forget_poll(tx, flow_id),
        Work::DropMessages {
            from,
            to,
            older_than,
        } => retain::drop_messages(tx, *from, *to, *older_than),
        Work::DropKeys { expired_at } => retain::drop_keys(tx, *expired_at),
        Work::DropPlan {
            flow_id,
            version,
            checked_at,
        } => plan::drop(tx, flow_id, *version, *checked_at),
        Work::Append(_)
        | Work::Checkpoint(_)
        | Work::Settle(_)
        | Work::Claim(_)
        | Work::Fold
        | Work::Shrink { .. }
        | Work::Truncate
        | Work::Close => Ok(Effect::Done),
    }
}
