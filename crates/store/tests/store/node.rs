//! Nodes, and what control planes share out among themselves.

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use kanat_store::node::{EnvironmentStatus, Node};
use kanat_store::{node, periodic_task};

use crate::{NOW, TestStore};

on_both_databases! {
    a_node_is_remembered_as_it_was_last_seen
    a_periodic_task_is_taken_up_once_for_each_due_time
}

async fn a_node_is_remembered_as_it_was_last_seen(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let running = EnvironmentStatus {
        environment_id: test.environment.clone(),
        epoch: "epoch_1".to_owned(),
        generation: 7,
        set_hash: "00ff".to_owned(),
        rejected: vec![("flow/1".to_owned(), "no such transform".to_owned())],
    };
    let mut seen = Node {
        id: NodeId::generate(),
        boot_id: BootId::from("boot_1"),
        address: "10.0.0.1:8080".to_owned(),
        build: "0.1.0".to_owned(),
        control_plane: BootId::from("boot_a"),
        status: "connected".to_owned(),
        in_flight: 3,
        environments: vec![running.clone()],
        serves_all: true,
        last_seen_at: NOW,
    };
    assert!(node::upsert(&mut tx, &seen).await.unwrap());
    node::environment::upsert(&mut tx, &seen.id, &running)
        .await
        .unwrap();
    assert_eq!(node::all(&mut tx).await.unwrap(), [seen.clone()]);

    let earlier = Node {
        last_seen_at: NOW.before(std::time::Duration::from_secs(1)),
        ..seen.clone()
    };
    let moved = Node {
        control_plane: BootId::from("boot_b"),
        ..earlier
    };
    assert!(
        !node::upsert(&mut tx, &moved).await.unwrap(),
        "another has seen it later"
    );
    seen.in_flight = 0;
    assert!(node::upsert(&mut tx, &seen).await.unwrap());
    assert_eq!(node::all(&mut tx).await.unwrap(), [seen.clone()]);

    let long_ago = Timestamp::from_millis(0);
    let own = BootId::from("boot_a");
    let other = BootId::from("boot_b");
    assert_eq!(
        node::elsewhere(&mut tx, &other, long_ago).await.unwrap(),
        [seen.clone()]
    );
    assert_eq!(node::elsewhere(&mut tx, &own, long_ago).await.unwrap(), []);
    assert_eq!(node::elsewhere(&mut tx, &other, NOW).await.unwrap(), []);

    node::environment::delete_of_node(&mut tx, &NodeId::generate())
        .await
        .unwrap();
    assert_eq!(node::all(&mut tx).await.unwrap(), [seen.clone()]);
    node::environment::delete_of_node(&mut tx, &seen.id)
        .await
        .unwrap();
    assert_eq!(node::all(&mut tx).await.unwrap()[0].environments, []);
    assert_eq!(node::delete_unseen(&mut tx, NOW).await.unwrap(), 0);
    assert_eq!(
        node::delete_unseen(&mut tx, Timestamp::from_millis(NOW.as_millis() + 1))
            .await
            .unwrap(),
        1
    );
}

async fn a_periodic_task_is_taken_up_once_for_each_due_time(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let due = |n| Timestamp::from_millis(n);
    let mut taken = Vec::new();
    for (name, n) in [
        ("retention", 1),
        ("retention", 1),
        ("other", 1),
        ("retention", 3),
        ("retention", 2),
    ] {
        taken.push(periodic_task::take(&mut tx, name, due(n)).await.unwrap());
    }
    assert_eq!(taken, [true, false, true, true, false]);
}
