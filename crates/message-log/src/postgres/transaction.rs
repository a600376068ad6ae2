//! One transaction: what ends a hold on a message first, then what comes in. So a message that
//! frees its ordering key lets one that arrives with it be run at once.

use kanat_database::Session;
use kanat_model::Timestamp;
use sqlx::PgConnection;

use super::failure::Kind;
use super::operation::{Effect, Operation, Work};
use super::options::LockSpace;
use super::sequence::{self, Taken};
use super::witness::Witness;
use super::{append, change, keys, step, tried};
use crate::Settled;

/// A transaction under way.
pub(super) struct Transaction<'c> {
    pub conn: &'c mut PgConnection,
    pub now: Timestamp,
    /// The same instant by the clock of waits.
    pub steady: Timestamp,
    pub taken: Taken,
    /// A row that it has written, once it has written any.
    pub witness: Option<Witness>,
}

/// By what one finds out what became of a transaction.
pub(super) struct Trail {
    /// Its number, by which the database knows whether it is over.
    pub transaction: String,
    /// `None` when it wrote nothing.
    pub witness: Option<Witness>,
}

/// A transaction that did not go through.
pub(super) enum Failed {
    /// Nothing of it was written.
    Undone(sqlx::Error),
    /// The connection broke when it was to commit.
    InDoubt(Doubtful),
}

/// A transaction of which it is not known whether it was written.
pub(super) struct Doubtful {
    pub trail: Trail,
    /// What it did if it was.
    pub effects: Vec<Effect>,
}

impl<'c> Transaction<'c> {
    pub fn new(conn: &'c mut PgConnection, taken: Taken) -> Self {
        Self {
            conn,
            now: Timestamp::now(),
            steady: Timestamp::steady(),
            taken,
            witness: None,
        }
    }

    /// The next place in the log's order.
    pub fn next_seq(&mut self) -> Result<i64, sqlx::Error> {
        self.taken.next()
    }

    /// What is left of it once it is to be committed.
    pub fn trail(self) -> Trail {
        Trail {
            transaction: self.taken.transaction,
            witness: self.witness,
        }
    }
}

/// Does all operations or none. Gives an effect for each.
pub(super) async fn run(
    session: &mut Session,
    space: LockSpace,
    operations: &[Operation],
) -> Result<Vec<Effect>, Failed> {
    let Session {
        connection,
        patience,
    } = session;
    let written = patience
        .answered(write(connection, space, operations))
        .await;
    let (trail, effects) = written.map_err(Failed::Undone)?;
    kanat_failpoint::hit_for_each("accept.before_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.before_commit", || settles(operations));
    let committed = patience
        .answered(sqlx::raw_sql("COMMIT").execute(&mut *connection))
        .await;
    kanat_failpoint::hit_for_each("accept.after_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.after_commit", || settles(operations));
    match committed {
        Ok(_) => Ok(effects),
        Err(error) if Kind::of(&error) == Kind::Broken => {
            tracing::warn!(
                error = %error,
                "the message log lost its connection at a commit, asking what became of it",
            );
            Err(Failed::InDoubt(Doubtful { trail, effects }))
        }
        Err(error) => Err(Failed::Undone(error)),
    }
}

async fn write(
    conn: &mut PgConnection,
    space: LockSpace,
    operations: &[Operation],
) -> Result<(Trail, Vec<Effect>), sqlx::Error> {
    let events = operations
        .iter()
        .map(|operation| operation.work.events())
        .sum();
    let taken = sequence::begin(conn, space, events).await?;
    keys::lock(conn, space, operations).await?;
    let mut tx = Transaction::new(conn, taken);
    let effects = apply(&mut tx, operations).await?;
    Ok((tx.trail(), effects))
}

async fn apply(
    tx: &mut Transaction<'_>,
    operations: &[Operation],
) -> Result<Vec<Effect>, sqlx::Error> {
    let mut effects: Vec<Effect> = operations
        .iter()
        .map(|_| Effect::Settled(Settled::Fenced))
        .collect();
    let mut checkpoints = Vec::new();
    let mut changes = Vec::new();
    let mut appends = Vec::new();
    let mut tried = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        match &operation.work {
            Work::Append(message) => appends.push((at, message.as_ref())),
            Work::AppendTried(rows) => {
                effects[at] = Effect::Tried(u64::try_from(rows.len()).unwrap_or(u64::MAX));
                tried.extend(rows);
            }
            Work::Checkpoint(checkpoint) => checkpoints.push((at, checkpoint.as_ref())),
            Work::Settle(change) => changes.push((at, change.as_ref())),
        }
    }
    for (at, settled) in step::checkpoint(tx, &checkpoints).await? {
        effects[at] = Effect::Settled(settled);
    }
    for (at, changed) in change::apply(tx, &changes).await? {
        effects[at] = Effect::Settled(if changed.is_some() {
            Settled::Done
        } else {
            Settled::Fenced
        });
    }
    for (at, appended) in append::append(tx, &appends).await? {
        effects[at] = Effect::Appended(appended);
    }
    tried::append(tx, &tried).await?;
    Ok(effects)
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

/// Leaves the connection ready for the next transaction; `false` when it is of no more use.
pub(super) async fn roll_back(session: &mut Session) -> bool {
    let Session {
        connection,
        patience,
    } = session;
    patience
        .answered(sqlx::raw_sql("ROLLBACK").execute(connection))
        .await
        .is_ok()
}
