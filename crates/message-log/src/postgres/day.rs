//! The days: each has a partition of every table that grows with the messages, and a range of the
//! numbers of events. The sequence that gives the numbers is moved to the range of the new day when
//! that begins.

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::options::LockSpace;
use super::schema::TABLES_LOCK;

/// Numbers of a day: more than 700,000 events in each second of it, and all stay below 2^53, which
/// every reader of JSON keeps. A day that had more would use the next one's, whose partitions stand
/// ready.
const BITS: u32 = 36;

const DAY_MS: i64 = 86_400_000;

/// The partitioned tables, and the column that a day is a range of.
pub(super) const TABLES: [&str; 4] = ["messages", "bodies", "transitions", "steps"];

const LOCK: &str = "SELECT pg_advisory_xact_lock($1, $2)";
/// Today by the database's clock, and the day of the last number given.
const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint, \
                   last_value >> $1 FROM events";
const KNOWN: &str = "SELECT day, suffix FROM days ORDER BY day";
const RECORD: &str = "INSERT INTO days (day, suffix) VALUES ($1, $2)";
const MOVE_ON: &str = "SELECT setval('events', $1, false) FROM events WHERE last_value < $1";

/// A day that has partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Day {
    /// Days since 1970.
    pub number: i64,
    /// Suffix of the names of its partitions.
    pub suffix: String,
}

impl Day {
    pub fn new(number: i64) -> Self {
        let begin = kanat_model::Timestamp::from_millis(number.saturating_mul(DAY_MS)).to_string();
        let suffix = begin
            .chars()
            .take(10)
            .filter(char::is_ascii_digit)
            .collect();
        Self { number, suffix }
    }

    /// The first number of its range.
    pub fn first_seq(&self) -> i64 {
        self.number << BITS
    }

    /// The instant by which it is over.
    pub fn end_ms(&self) -> i64 {
        (self.number + 1).saturating_mul(DAY_MS)
    }

    pub fn table(&self, table: &str) -> String {
        format!("{table}_{}", self.suffix)
    }

    /// Returns the statements that create its partitions. They are created alone and then attached,
    /// which blocks neither readers nor writers.
    fn statements(&self) -> String {
        let from = self.first_seq();
        let to = (self.number + 1) << BITS;
        let mut text = String::new();
        for table in TABLES {
            let partition = self.table(table);
            text.push_str(&format!(
                "CREATE TABLE {partition} (LIKE {table} INCLUDING ALL);
                 ALTER TABLE {table} ATTACH PARTITION {partition} FOR VALUES FROM ({from}) TO
                     ({to});"
            ));
        }
        // An id cannot be unique in all days, which no index spans.
        text.push_str(&format!(
            "CREATE UNIQUE INDEX ON {} (id);",
            self.table("messages")
        ));
        text
    }
}

/// Sees to it that today and tomorrow have partitions, and that today's numbers are given. Says
/// which day it is.
pub(super) async fn prepare(conn: &mut PgConnection, space: LockSpace) -> sqlx::Result<i64> {
    let today = make(conn, space).await?;
    // Every process sees the partitions of the new numbers now.
    let mut tx = conn.begin().await?;
    sqlx::query(LOCK)
        .bind(space.keys)
        .bind(TABLES_LOCK)
        .execute(&mut *tx)
        .await?;
    sqlx::query(MOVE_ON)
        .bind(Day::new(today).first_seq())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(today)
}

/// The days that have partitions, the oldest first.
pub(super) async fn all(conn: &mut PgConnection) -> sqlx::Result<Vec<Day>> {
    let rows = sqlx::query(KNOWN).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(Day {
                number: row.try_get(0)?,
                suffix: row.try_get(1)?,
            })
        })
        .collect()
}

/// Today, by the database's clock.
pub(super) async fn today(conn: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query(NOW)
        .bind(BITS.cast_signed())
        .fetch_one(conn)
        .await?
        .try_get(0)
}

pub(super) async fn make_day(conn: &mut PgConnection, day: &Day) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(day.statements()))
        .execute(&mut *conn)
        .await?;
    sqlx::query(RECORD)
        .bind(day.number)
        .bind(&day.suffix)
        .execute(conn)
        .await?;
    Ok(())
}

async fn make(conn: &mut PgConnection, space: LockSpace) -> sqlx::Result<i64> {
    let mut tx = conn.begin().await?;
    sqlx::query(LOCK)
        .bind(space.keys)
        .bind(TABLES_LOCK)
        .execute(&mut *tx)
        .await?;
    let now = sqlx::query(NOW)
        .bind(BITS.cast_signed())
        .fetch_one(&mut *tx)
        .await?;
    let today: i64 = now.try_get(0)?;
    let last: i64 = now.try_get(1)?;
    let known = all(&mut tx).await?;
    let mut needed = vec![today, today + 1];
    // A clock that was set back, or a day that ran out of numbers.
    needed.extend(
        (last > today)
            .then_some([last, last + 1])
            .into_iter()
            .flatten(),
    );
    for day in needed {
        if known.iter().all(|known| known.number != day) {
            make_day(&mut tx, &Day::new(day)).await?;
        }
    }
    tx.commit().await?;
    Ok(today)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_named_by_its_date_and_its_numbers_keep_their_digits_in_json() {
        let day = Day::new(20_778);
        assert_eq!(day.table("messages"), "messages_20261121");
        assert_eq!(day.end_ms(), 1_795_305_600_000);
        assert!(Day::new(100_000).first_seq() < 1 << 53);
    }
}
