//! Transactions of callers who stop waiting for them.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use kanat_store::{Options, Store, Tx, meta};
use kanat_testing_postgres::Database;

/// Whether `begun` came to its end before it had been polled so often; then it was dropped.
async fn ends_within(polls: usize, begun: impl Future<Output = Result<Tx, kanat_store::Error>>) -> bool {
    let (mut begun, mut left) = (pin!(begun), polls);
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

/// On PostgreSQL, with one connection, so that who comes next gets that of the one who left.
#[tokio::test]
async fn who_stops_waiting_for_a_transaction_leaves_no_connection_inside_of_one() {
    let database = Database::fresh();
    let store = Store::open_with(database.url(), &Options { connections: 1 }).await.unwrap();
    let mut polls = 1;
    while !ends_within(polls, store.read()).await {
        let mut tx = store.begin().await.unwrap();
        let value = polls.to_string();
        meta::set(&mut tx, "polls", &value).await.expect("the next one can write");
        tx.commit().await.unwrap();
        assert!(!ends_within(1, store.read()).await, "it takes more than one look at the socket to begin");
        let read = meta::get(&mut store.read().await.unwrap(), "polls").await.unwrap();
        assert_eq!(read, Some(value), "the next one reads what there is");
        polls += 1;
    }
    assert!(polls > 2, "nobody left while the database was about to begin");
}
