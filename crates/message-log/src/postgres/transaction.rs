//! One transaction: what ends a hold on a message first, then what comes in. So a message that
//! frees its ordering key lets one that arrives with it be run at once.

use kanat_database::Session;
use kanat_model::Timestamp;
use sqlx::PgConnection;

use super::commit_marker::CommitMarker;
use super::failure::FailureKind;
use super::operation::{Effect, Operation, Work};
use super::options::LockSpace;
use super::sequence::{self, SequenceRange};
use super::{append, attempted, change, keys, step};
use crate::LeasedWriteOutcome;

/// An open transaction.
pub(super) struct Transaction<'c> {
    pub conn: &'c mut PgConnection,
    pub now: Timestamp,
    /// The present instant by the steady clock.
    pub steady: Timestamp,
    pub taken: SequenceRange,
    /// A row that it has written, once it has written any.
    pub marker: Option<CommitMarker>,
}

/// Reference to a transaction, by which its outcome can be found out.
pub(super) struct TransactionRef {
    /// Transaction id of the database, which tells whether the transaction has ended.
    pub id: String,
    /// `None` when it wrote nothing.
    pub marker: Option<CommitMarker>,
}

/// Failure of a transaction.
pub(super) enum TransactionError {
    /// The transaction was rolled back.
    Aborted(sqlx::Error),
    /// The connection broke at the commit.
    InDoubt {
        transaction: TransactionRef,
        /// Effects of the operations if the transaction was committed.
        effects: Vec<Effect>,
    },
}

impl<'c> Transaction<'c> {
    pub fn new(conn: &'c mut PgConnection, taken: SequenceRange) -> Self {
        Self {
            conn,
            now: Timestamp::now(),
            steady: Timestamp::steady(),
            taken,
            marker: None,
        }
    }

    /// Returns the next sequence number.
    pub fn next_seq(&mut self) -> sqlx::Result<i64> {
        self.taken.next()
    }

    /// Returns the reference that remains when the transaction is to be committed.
    pub fn into_ref(self) -> TransactionRef {
        TransactionRef {
            id: self.taken.transaction,
            marker: self.marker,
        }
    }
}

/// Runs all operations or none. Returns the effect of each.
pub(super) async fn run(
    session: &mut Session,
    space: LockSpace,
    operations: &[Operation],
) -> Result<Vec<Effect>, TransactionError> {
    let Session {
        connection,
        patience,
    } = session;
    let written = patience
        .answered(write(connection, space, operations))
        .await;
    let (transaction, effects) = written.map_err(TransactionError::Aborted)?;
    kanat_failpoint::hit_for_each("accept.before_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.before_commit", || settles(operations));
    let committed = patience
        .answered(sqlx::raw_sql("COMMIT").execute(&mut *connection))
        .await;
    kanat_failpoint::hit_for_each("accept.after_commit", || appends(operations));
    kanat_failpoint::hit_for_each("settle.after_commit", || settles(operations));
    match committed {
        Ok(_) => Ok(effects),
        Err(error) if FailureKind::from_error(&error) == FailureKind::Broken => {
            tracing::warn!(
                error = %error,
                "the message log lost its connection at a commit, asking what became of it",
            );
            Err(TransactionError::InDoubt {
                transaction,
                effects,
            })
        }
        Err(error) => Err(TransactionError::Aborted(error)),
    }
}

async fn write(
    conn: &mut PgConnection,
    space: LockSpace,
    operations: &[Operation],
) -> sqlx::Result<(TransactionRef, Vec<Effect>)> {
    let events = operations
        .iter()
        .map(|operation| operation.work.events())
        .sum();
    let taken = sequence::begin(conn, space, events).await?;
    keys::lock(conn, space, operations).await?;
    let mut tx = Transaction::new(conn, taken);
    let effects = apply(&mut tx, operations).await?;
    Ok((tx.into_ref(), effects))
}

async fn apply(tx: &mut Transaction<'_>, operations: &[Operation]) -> sqlx::Result<Vec<Effect>> {
    let mut effects: Vec<Effect> = operations
        .iter()
        .map(|_| Effect::LeasedWrite(LeasedWriteOutcome::Fenced))
        .collect();
    let mut checkpoints = Vec::new();
    let mut changes = Vec::new();
    let mut appends = Vec::new();
    let mut attempted_rows = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        match &operation.work {
            Work::Append(message) => appends.push((index, message.as_ref())),
            Work::AppendAttempted(rows) => {
                effects[index] =
                    Effect::AppendedAttempted(u64::try_from(rows.len()).unwrap_or(u64::MAX));
                attempted_rows.extend(rows);
            }
            Work::Checkpoint(checkpoint) => checkpoints.push((index, checkpoint.as_ref())),
            Work::Settle(change) => changes.push((index, change.as_ref())),
        }
    }
    for (index, outcome) in step::checkpoint(tx, &checkpoints).await? {
        effects[index] = Effect::LeasedWrite(outcome);
    }
    for (index, changed) in change::apply(tx, &changes).await? {
        effects[index] = Effect::Settled(if changed.is_some() {
            LeasedWriteOutcome::Done
        } else {
            LeasedWriteOutcome::Fenced
        });
    }
    for (index, appended) in append::append(tx, &appends).await? {
        effects[index] = Effect::Appended(appended);
    }
    attempted::append(tx, &attempted_rows).await?;
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

/// Rolls back. Returns whether the connection is ready for the next transaction.
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
