//! A configuration that goes on at another server: its primary is killed, and a synchronous standby
//! is promoted.

use std::time::Duration;

use kanat_model::id::NodeId;
use kanat_store::{Announcement, Listener, Store, announcement, meta};
use kanat_testing_postgres::{Cluster, Durability, Programs};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_is_read_and_announcements_are_heard_at_the_promoted_server() {
    let (primary, standby) = tokio::task::block_in_place(|| {
        let primary = Cluster::start(Programs::find().unwrap(), Durability::OnDisk).unwrap();
        primary.create_database("kanat").unwrap();
        let standby = primary.synchronous_standby().unwrap();
        (primary, standby)
    });
    let list = format!("{},{}", standby.url("kanat"), primary.url("kanat"));
    let one = Store::open(&list).await.unwrap();
    let other = Store::open(&list).await.unwrap();
    let mut hears = one.listen().await.unwrap().unwrap();
    set(&other, "red").await;
    announce(&other, "before").await;
    assert_eq!(hears.next().await.unwrap(), drain("before"));

    tokio::task::block_in_place(|| {
        primary.kill().unwrap();
        standby.promote().unwrap();
    });
    assert!(hears.next().await.unwrap_err().may_pass());
    let mut hears = listen(&one).await;
    // The other one has nobody who listens for it, and is told by none.
    let mut found = listen(&other).await;
    let mut tx = other.read().await.unwrap();
    assert_eq!(
        meta::get(&mut tx, "colour").await.unwrap(),
        Some("red".to_owned())
    );
    tx.commit().await.unwrap();
    announce(&other, "after").await;
    for listener in [&mut hears, &mut found] {
        assert_eq!(listener.next().await.unwrap(), drain("after"));
    }
    one.close().await;
    other.close().await;
}

async fn listen(store: &Store) -> Listener {
    loop {
        match store.listen().await {
            Ok(listener) => return listener.unwrap(),
            Err(error) => assert!(error.may_pass(), "{error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn set(store: &Store, colour: &str) {
    let mut tx = store.begin().await.unwrap();
    meta::set(&mut tx, "colour", colour).await.unwrap();
    tx.commit().await.unwrap();
}

async fn announce(store: &Store, node: &str) {
    let mut tx = store.begin().await.unwrap();
    announcement::announce(&mut tx, &drain(node)).await.unwrap();
    tx.commit().await.unwrap();
}

fn drain(node: &str) -> Announcement {
    Announcement::Drain {
        node_id: NodeId::from(node),
        within: Duration::from_secs(25),
    }
}
