//! A transaction, and how one begins so that its connection is of use afterwards, whatever becomes
//! of the caller.

use std::ops::{Deref, DerefMut};

use kanat_database::Patience;
use sqlx::pool::PoolConnection;
use sqlx::{Any, SqlSafeStr, Transaction};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::task::TaskTracker;

use crate::{Db, Error, Result};

/// A transaction: undone unless it is committed.
pub struct Tx {
    db: Db,
    turn: Option<Turn>,
}

/// One's turn to write, where one writes at a time.
pub(crate) struct Turn {
    _held: OwnedSemaphorePermit,
    written: watch::Sender<()>,
}

impl Turn {
    /// Tells `written` of what is committed in it.
    pub fn new(held: OwnedSemaphorePermit, written: watch::Sender<()>) -> Self {
        Self {
            _held: held,
            written,
        }
    }
}

impl Tx {
    /// Begins by `statement`, in a task of its own that goes on when the caller stops waiting.
    ///
    /// The driver for PostgreSQL undoes only a transaction of which it has heard that it began: a
    /// connection that was asked to begin, and whose answer nobody waits for, would go back to the
    /// pool inside of one. Its next user would read an old state, or could not write. So the answer
    /// is always waited for, and a transaction that nobody wants is undone then.
    pub(crate) async fn begin(
        connection: PoolConnection<Any>,
        statement: &'static str,
        turn: Option<Turn>,
        patience: Patience,
    ) -> Result<Self> {
        let begun = TaskTracker::new().spawn(async move {
            let begun = Transaction::begin(connection, Some(statement.into_sql_str()));
            let tx = patience.answered(begun).await?;
            Ok(Self {
                db: Db::new(tx, patience),
                turn,
            })
        });
        begun
            .await
            .unwrap_or(Err(Error::from(sqlx::Error::WorkerCrashed)))
    }

    /// Returns once the changes are durable. It goes on when the caller stops waiting: what is
    /// written then is told of too.
    pub async fn commit(self) -> Result<()> {
        let Self { db, turn } = self;
        let committed = TaskTracker::new().spawn(async move {
            let committed = db.commit().await;
            // One that failed may have been written all the same.
            if let Some(turn) = turn {
                turn.written.send_replace(());
            }
            committed
        });
        committed
            .await
            .unwrap_or(Err(Error::from(sqlx::Error::WorkerCrashed)))
    }
}

impl Deref for Tx {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Db {
        &mut self.db
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kanat_testing_postgres::Database;
    use sqlx::AnyPool;
    use sqlx::any::AnyPoolOptions;

    use super::*;

    /// Finds whether another connection waits for the lock below.
    const WAITS: &str =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted";

    async fn one_connection(database: &Database) -> AnyPool {
        sqlx::any::install_default_drivers();
        AnyPoolOptions::new()
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

        let connection = pool.acquire().await.unwrap();
        let patience = Patience::in_place(Duration::from_secs(60));
        let begun = Tx::begin(
            connection,
            "BEGIN; SELECT pg_advisory_xact_lock(7)",
            None,
            patience,
        );
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
        tokio::select! {
            _ = begun => panic!("it cannot begin yet"),
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
