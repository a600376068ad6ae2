//! Transactions that end badly: what they leave behind.

use crate::TestStore;

/// Bytes that a file of one page more has no room for.
const LARGE: usize = 1 << 20;

#[tokio::test]
async fn a_connection_whose_transaction_did_not_end_cleanly_is_used_no_more() {
    let test = TestStore::in_a_file().await;
    let mut tx = test.store.begin().await.unwrap();
    // A full disk, as far as this connection is concerned. SQLite ends the transaction by itself.
    sqlx::query("PRAGMA max_page_count = 1").execute(&mut *tx).await.unwrap();
    let insert = sqlx::query("INSERT INTO meta (name, value) VALUES ('large', $1)").bind("x".repeat(LARGE));
    insert.execute(&mut *tx).await.expect_err("there is no room");
    tx.commit().await.expect_err("there is nothing to commit");

    for _ in 0..20 {
        let mut tx = test.store.begin().await.unwrap();
        sqlx::query("UPDATE meta SET value = value").execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = test.store.read().await.unwrap();
        sqlx::query("SELECT name FROM meta").fetch_all(&mut *tx).await.unwrap();
    }
}
