//! Transactions that end badly: what they leave behind.

use kanat_store::Store;
use kanat_testing_postgres::Database;

use crate::TestStore;

/// Bytes that a file of one page more has no room for.
const LARGE: usize = 1 << 20;

#[tokio::test]
async fn a_connection_whose_transaction_did_not_end_cleanly_is_used_no_more() {
    let test = TestStore::in_a_file().await;
    let mut tx = test.store.begin().await.unwrap();
    // A full disk, as far as this connection is concerned. SQLite ends the transaction by itself.
    sqlx::query("PRAGMA max_page_count = 1")
        .execute(&mut *tx)
        .await
        .unwrap();
    let insert =
        sqlx::query("INSERT INTO meta (name, value) VALUES ('large', $1)").bind("x".repeat(LARGE));
    insert
        .execute(&mut *tx)
        .await
        .expect_err("there is no room");
    tx.commit().await.expect_err("there is nothing to commit");

    for _ in 0..20 {
        let mut tx = test.store.begin().await.unwrap();
        sqlx::query("UPDATE meta SET value = value")
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let mut tx = test.store.read().await.unwrap();
        sqlx::query("SELECT name FROM meta")
            .fetch_all(&mut *tx)
            .await
            .unwrap();
    }
}

/// A managed service has settings for everybody's sessions. Ours have their own.
#[tokio::test]
async fn sessions_have_their_own_bounds_whatever_the_database_sets_for_everybody() {
    let database = Database::fresh();
    let store = Store::open(database.url()).await.unwrap();
    let settings = [
        ("statement_timeout", "5s", "25s"),
        ("lock_timeout", "1s", "0"),
        ("idle_in_transaction_session_timeout", "1s", "1min"),
        ("idle_session_timeout", "1s", "0"),
    ];
    for (name, value, _) in settings {
        let alter = format!("ALTER DATABASE %I SET {name} = ''{value}''");
        let alter = format!("DO $$ BEGIN EXECUTE format('{alter}', current_database()); END $$");
        let mut tx = store.begin().await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(alter))
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    let again = Store::open(database.url()).await.unwrap();
    let mut tx = again.read().await.unwrap();
    for (name, _, expected) in settings {
        let show = sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(name);
        assert_eq!(show.fetch_one(&mut *tx).await.unwrap(), expected, "{name}");
    }
    tx.commit().await.unwrap();
    store.close().await;
    again.close().await;
}
