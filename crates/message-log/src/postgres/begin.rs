//! How a transaction begins so that its connection is of use afterwards, whatever becomes of the caller.

use std::pin::Pin;
use std::task::{Context, Poll};

use sqlx::{PgPool, Postgres, Transaction};
use tokio_util::task::TaskTracker;

/// One that writes.
pub(super) async fn write(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin(pool, "BEGIN").await
}

/// One that sees one state of the log throughout.
pub(super) async fn snapshot(pool: &PgPool) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    begin(pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
}

async fn begin(pool: &PgPool, statement: &'static str) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let connection = pool.acquire().await?;
    let begun = Transaction::begin(connection, Some(sqlx::SqlSafeStr::into_sql_str(statement)));
    Begin(Some(begun)).await
}

/// The driver undoes only a transaction of which it has heard that it began: a connection that was asked to begin, and
/// whose answer nobody waits for, would go back to the pool inside of one. What is written on it next, without a
/// transaction of its own, would never be committed, and what is read would be of the past. So the answer is always waited
/// for, and the transaction is undone then.
struct Begin<F: Future<Output: Send> + Send + Unpin + 'static>(Option<F>);

impl<F: Future<Output: Send> + Send + Unpin + 'static> Future for Begin<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(begun) = &mut self.0 else { return Poll::Pending };
        let answer = Pin::new(begun).poll(cx);
        if answer.is_ready() {
            self.0 = None;
        }
        answer
    }
}

impl<F: Future<Output: Send> + Send + Unpin + 'static> Drop for Begin<F> {
    fn drop(&mut self) {
        if let Some(begun) = self.0.take() {
            // Who closes the pool waits for its connection.
            TaskTracker::new().spawn(async move { drop(begun.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use kanat_testing_postgres::Database;
    use sqlx::postgres::PgPoolOptions;

    use super::*;

    /// Whether it begins before it was polled so often; then it is dropped.
    async fn begins_within(polls: usize, pool: &PgPool) -> bool {
        let (mut begun, mut left) = (Box::pin(snapshot(pool)), polls);
        poll_fn(|cx| {
            left -= 1;
            match begun.as_mut().poll(cx) {
                Poll::Ready(tx) => Poll::Ready(tx.is_ok()),
                Poll::Pending if left == 0 => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_no_connection_inside_of_a_transaction() {
        let database = Database::fresh();
        let pool = PgPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
        sqlx::raw_sql("CREATE TABLE written (n BIGINT)").execute(&pool).await.unwrap();
        let other = PgPoolOptions::new().max_connections(1).connect(database.url()).await.unwrap();
        let mut polls = 1;
        while !begins_within(polls, &pool).await {
            sqlx::raw_sql("INSERT INTO written VALUES (1)").execute(&pool).await.expect("the next one can write");
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM written").fetch_one(&other).await.unwrap();
            assert_eq!(count, i64::try_from(polls).unwrap(), "what was written is committed");
            polls += 1;
        }
        assert!(polls > 2, "nobody left while the database was about to begin");
    }
}
