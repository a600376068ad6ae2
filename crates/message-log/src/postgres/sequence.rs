//! Sequence numbers of events, and the bound up to which they may be read.
//!
//! Transactions of several processes take numbers from one sequence and commit in any order. No
//! reader of the stream may pass a number that is not committed yet. So each transaction first
//! takes a shared advisory lock that is named by the last number given out, and holds it to its
//! end: all its numbers are greater. A reader reads the sequence, then the locks, and then events
//! up to the lowest of these numbers. A later lock belongs to a transaction with greater numbers.

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Row};

use super::options::LockSpace;
use crate::row::unreadable;

/// The bits of a lock's number that hold a number of the sequence; above them is the schema's own.
const NUMBER_BITS: u32 = 53;

/// Sequence numbers that a transaction took before it wrote.
pub(super) struct SequenceRange {
    /// Id of the transaction, by which its outcome is asked for when the connection breaks.
    pub transaction: String,
    /// Numbers in ascending order.
    pub seqs: std::vec::IntoIter<i64>,
}

impl SequenceRange {
    /// Returns the next number.
    ///
    /// # Errors
    /// The transaction asks for more numbers than it took.
    pub fn next(&mut self) -> sqlx::Result<i64> {
        self.seqs
            .next()
            .ok_or_else(|| sqlx::Error::Encode("a group wrote more events than it may".into()))
    }
}

/// Begins a transaction and takes numbers for it, in one round trip.
pub(super) async fn begin(
    conn: &mut PgConnection,
    space: LockSpace,
    count: usize,
) -> sqlx::Result<SequenceRange> {
    let text = format!("BEGIN; {}", statements(space, count));
    read(sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(conn).await?)
}

/// Takes numbers for the open transaction.
pub(super) async fn take(
    conn: &mut PgConnection,
    space: LockSpace,
    count: usize,
) -> sqlx::Result<SequenceRange> {
    read(
        sqlx::raw_sql(AssertSqlSafe(statements(space, count)))
            .fetch_all(conn)
            .await?,
    )
}

/// Bounds of the sequence numbers.
pub(super) struct Horizon {
    /// Last number that was given out.
    pub given: i64,
    /// Number up to which all written events are visible.
    pub readable: i64,
}

pub(super) async fn horizon(pool: &PgPool, space: LockSpace) -> sqlx::Result<Horizon> {
    let rows = sqlx::raw_sql(AssertSqlSafe(horizon_statements(space)))
        .fetch_all(pool)
        .await?;
    let bounds = rows
        .iter()
        .map(|row| row.try_get::<Option<i64>, _>(0))
        .collect::<Result<Vec<_>, _>>()?;
    let given = bounds.first().copied().flatten().unwrap_or(0);
    Ok(Horizon {
        given,
        readable: bounds.into_iter().flatten().min().unwrap_or(0),
    })
}

fn statements(space: LockSpace, count: usize) -> String {
    let last = last_given();
    format!(
        "SELECT pg_current_xact_id()::text,
            pg_advisory_xact_lock_shared(({}::bigint << {NUMBER_BITS}) | ({last})) FROM events;
         SELECT nextval('events') FROM generate_series(1, {count})",
        space.groups
    )
}

/// One after the other, as two statements of one round trip.
fn horizon_statements(space: LockSpace) -> String {
    let last = last_given();
    let mask = (1_i64 << NUMBER_BITS) - 1;
    format!(
        "SELECT {last} FROM events;
         SELECT min(held.number & {mask}) FROM (
            SELECT (classid::bigint << 32) | objid::bigint AS number FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         ) AS held WHERE held.number >> {NUMBER_BITS} = {}",
        space.groups
    )
}

fn last_given() -> &'static str {
    "last_value - CASE WHEN is_called THEN 0 ELSE 1 END"
}

fn read(rows: Vec<sqlx::postgres::PgRow>) -> sqlx::Result<SequenceRange> {
    let mut rows = rows.into_iter();
    let first = rows.next().ok_or_else(|| unreadable("transaction", ""))?;
    let transaction = first.try_get(0)?;
    let mut seqs = rows
        .map(|row| row.try_get(0))
        .collect::<Result<Vec<i64>, _>>()?;
    seqs.sort_unstable();
    Ok(SequenceRange {
        transaction,
        seqs: seqs.into_iter(),
    })
}
