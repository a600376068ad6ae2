//! Transactions that leave their connection usable when the caller goes away.

use kanat_database::Patience;
use sqlx::{PgPool, Postgres, SqlSafeStr, Transaction};
use tokio_util::task::TaskTracker;

use super::options::ANSWER_TIMEOUT;

/// Begins a transaction that writes.
pub(super) async fn write(
    pool: &PgPool,
    patience: &Patience,
) -> sqlx::Result<Transaction<'static, Postgres>> {
    begin(pool, "BEGIN", patience).await
}

/// Begins a transaction that reads one snapshot of the log.
pub(super) async fn snapshot(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    begin(
        pool,
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        &Patience::in_place(ANSWER_TIMEOUT),
    )
    .await
}

/// Begins a transaction in a task that continues when the caller stops waiting.
///
/// The driver rolls back a transaction only after the answer to its `BEGIN`. If no task waited for
/// the answer, the connection would return to the pool inside of a transaction. Later writes on it
/// would never be committed, and later reads would see an old snapshot. So the task always waits
/// for the answer, and a transaction without a caller is rolled back then.
async fn begin(
    pool: &PgPool,
    statement: &'static str,
    patience: &Patience,
) -> sqlx::Result<Transaction<'static, Postgres>> {
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

    /// Counts the connections that wait for the lock below.
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
        let patience = Patience::in_place(ANSWER_TIMEOUT);
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
