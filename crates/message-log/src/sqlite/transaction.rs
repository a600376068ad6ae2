//! A transaction of the writer: its clock, its sequence numbers, its begin and its end.

use kanat_model::Timestamp;
use rusqlite::{Connection, Params};

use super::options::CommitDurability;
use super::statements::Statements;

/// A transaction under way.
pub(super) struct Transaction<'t, 'c> {
    pub conn: &'c Connection,
    pub now: Timestamp,
    /// The instant of `now` by the clock of due times and leases.
    pub steady: Timestamp,
    statements: &'t Statements<'c>,
    last_seq: i64,
}

impl Transaction<'_, '_> {
    /// Takes the next sequence number of the log.
    pub fn take_seq(&mut self) -> i64 {
        self.last_seq += 1;
        self.last_seq
    }

    pub fn last_seq(&self) -> i64 {
        self.last_seq
    }

    /// Runs a statement that stays prepared, and returns the number of changed rows.
    pub fn execute(&self, statement: &'static str, values: impl Params) -> rusqlite::Result<usize> {
        self.statements.execute(statement, values)
    }
}

/// Runs `work` in a transaction whose sequence numbers continue after `last_seq`, and commits it.
///
/// # Errors
/// `work` or the commit failed, and everything is rolled back.
pub(super) fn run<T>(
    statements: &Statements<'_>,
    last_seq: i64,
    durability: CommitDurability,
    work: impl FnOnce(&mut Transaction<'_, '_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let conn = statements.conn();
    let mut tx = Transaction {
        conn,
        now: Timestamp::now(),
        steady: Timestamp::steady(),
        statements,
        last_seq,
    };
    let begun = statements
        .set_synchronous(durability)
        .and_then(|()| tx.execute("BEGIN IMMEDIATE", ()));
    let result = begun
        .and_then(|_| work(&mut tx))
        .and_then(|value| tx.execute("COMMIT", ()).map(|_| value));
    // SQLite rolls back by itself after some errors.
    if result.is_err()
        && !conn.is_autocommit()
        && let Err(error) = tx.execute("ROLLBACK", ())
    {
        tracing::error!(%error, "a failed transaction could not be rolled back");
    }
    result
}
