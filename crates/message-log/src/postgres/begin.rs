//! How a transaction begins so that its connection is of use afterwards, whatever becomes of the
//! caller.

use kanat_database::Patience;
use sqlx::{PgPool, Postgres, SqlSafeStr, Transaction};
use tokio_util::task::TaskTracker;

use super::options::PATIENCE;

/// One that writes.
pub(super) async fn write(
    pool: &PgPool,
    patience: &Patience,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin(pool, "BEGIN", patience).await
}

/// One that sees one state of the log throughout.
pub(super) async fn snapshot(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin(
        pool,
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        &Patience::in_place(PATIENCE),
    )
    .await
}

/// Begins in a task of its own that goes on when the caller stops waiting.
///
/// The driver undoes only a transaction of which it has heard that it began: a connection that was
/// asked to begin, and whose answer nobody waits for, would go back to the pool inside of one. What
/// is written on it next, without a transaction of its own, would never be committed, and what is
/// read would be of the past. So the answer is always waited for, and a transaction that nobody
/// wants is undone then.
async fn begin(
    pool: &PgPool,
    statement: &'static str,
    patience: &Patience,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let connection = patience.acquired(pool.acquire()).await?;
    let patience = patience.clone();
    let begin = async move {
        patience
            .answered(Transaction::begin(
                connection,
                Some(statement.into_sql_str()),
            ))
            .await
    };
    let begun = TaskTracker::new().spawn(begin);
    begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kanat_testing_postgres::Database;
    use sqlx::postgres::PgPoolOptions;

    use super::*;

    /// Whether another connection waits for the lock below.
    const WAITS: &str =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted";

    async fn one_connection(database: &Database) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .connect(database.url())
            .await
            .unwrap()
    }

    /// The database cannot answer that the transaction began before the caller has left.
    #[tokio::test]
    async fn who_stops_waiting_leaves_no_connection_inside_of_a_transaction() {
        let database = Database::fresh();
        let pool = one_connection(&database).await;
        let other = one_connection(&database).await;
        sqlx::raw_sql("CREATE TABLE written (n BIGINT); SELECT pg_advisory_lock(7)")
            .execute(&other)
            .await
            .unwrap();

        let asked = async {
            while sqlx::query_scalar::<_, i64>(WAITS)
                .fetch_one(&other)
                .await
                .unwrap()
                == 0
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let patience = Patience::in_place(PATIENCE);
        tokio::select! {
            _ = begin(&pool, "BEGIN; SELECT pg_advisory_xact_lock(7)", &patience) => {
                panic!("it cannot begin yet")
            }
            () = asked => {}
        }
        sqlx::raw_sql("SELECT pg_advisory_unlock(7)")
            .execute(&other)
            .await
            .unwrap();

        sqlx::raw_sql("INSERT INTO written VALUES (1)")
            .execute(&pool)
            .await
            .expect("the next one can write");
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM written")
            .fetch_one(&other)
            .await
            .unwrap();
        assert_eq!(count, 1, "what was written is committed");
    }
}
