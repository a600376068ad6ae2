//! The message log restored from an older backup under nodes that hold messages: what they hold of
//! before ends no message of the restored log, and what the restored log has is delivered.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::split::{Split, TestProcess};
use kanat_tests::target::{ReceivedRequest, Reply, ok, status};
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::json;

use crate::batch_job;
use crate::webhook::passthrough;

/// A renewal each second.
const LEASE: (&str, &str) = ("KANAT_LEASE_SECONDS", "6");

/// Warning of a node that finds that the log went back.
const PAST_CHANGED: &str = "the message log went back to an earlier state";

/// A flow to a connector of its own name, tried until it is taken.
async fn deployed(api: &Rest, name: &str, target: &FakeTarget, more: &str) -> String {
    api.http_instance(name, &target.url()).await;
    let yaml = passthrough(name).replace("connector: erp", &format!("connector: {name}"));
    api.deployed(&format!(
        "{yaml}{more}on_error:\n  retry: 100x fixed(200ms)\n"
    ))
    .await
    .1
}

/// Sends until the node accepts it, as senders do on a 503.
async fn send(node: &TestProcess, webhook: &str, n: usize) -> String {
    until("the node takes the message", || async {
        let answer = Rest::new(&node.base, "")
            .without_key()
            .post(webhook, &json!({ "n": n, "key": "one" }))
            .await;
        (answer.status == 202).then(|| answer.json()["messageId"].as_str().unwrap().to_owned())
    })
    .await
}

fn number(request: &ReceivedRequest) -> u64 {
    request.json()["n"].as_u64().unwrap()
}

/// A target that refuses each message once, when the test lets go, and takes it when it comes
/// again.
async fn refusing_once() -> FakeTarget {
    let seen = Mutex::new(HashSet::new());
    FakeTarget::scripted(move |request, _| {
        if seen.lock().unwrap().insert(number(request)) {
            Reply::Late(500)
        } else {
            ok()
        }
    })
    .await
}

#[tokio::test]
async fn an_outcome_of_before_ends_no_message_that_came_after_the_restore() {
    const LOST: usize = 40;
    const LATER: usize = 60;
    let split = Split::new();
    let control = split.control_plane("control").await;
    let node = split.node_with("a", &[&control], &[LEASE]).await;
    let slow = FakeTarget::scripted(|_, _| Reply::Late(200)).await;
    let target = refusing_once().await;
    let lost = deployed(&control.api, "lost", &slow, "").await;
    let later = deployed(&control.api, "later", &target, "").await;
    control
        .api
        .message_becomes(&send(&node, &later, LATER).await, "processing")
        .await;
    target.arrivals(1).await;

    let backup = split.database.back_up().unwrap();
    for n in 0..LOST {
        send(&node, &lost, n).await;
    }
    slow.arrivals(LOST).await;
    split.database.restore(&backup).unwrap();
    let mut ids = Vec::new();
    for n in 0..LATER {
        ids.push(send(&node, &later, n).await);
    }
    target.arrivals(LOST).await;
    slow.release();
    until("the node finds that the log went back", || async {
        node.log().contains(PAST_CHANGED).then_some(())
    })
    .await;
    target.release();
    for id in &ids {
        control.api.message_becomes(id, "delivered").await;
    }
    let received = target.received();
    for n in 0..=LATER {
        let times = received
            .iter()
            .filter(|request| number(request) == n as u64)
            .count();
        assert!(
            times > 1,
            "message {n} was refused once, and taken after that: it came {times} times"
        );
    }
    let warned = node.log();
    let warning = warned
        .lines()
        .find(|line| line.contains(PAST_CHANGED))
        .unwrap();
    assert!(
        warning.contains("WARN") && warning.matches("epoch_").count() == 2,
        "{warning}"
    );
    assert_eq!(warned.matches(PAST_CHANGED).count(), 1, "{warned}");
}

#[tokio::test]
async fn all_that_the_restored_log_has_is_delivered_also_when_it_came_past_where_a_node_had_been() {
    const RETRYING: usize = 10;
    const ORDERED: usize = 5;
    const RECORDS: usize = 60;
    let split = Split::new();
    let control = split.control_plane("control").await;
    let a = split.node_with("a", &[&control], &[LEASE]).await;
    let b = split.node_with("b", &[&control], &[LEASE]).await;
    let up = std::sync::Arc::new(AtomicBool::new(false));
    let is_up = std::sync::Arc::clone(&up);
    let target = FakeTarget::scripted(move |_, _| {
        if is_up.load(Ordering::SeqCst) {
            ok()
        } else {
            status(503)
        }
    })
    .await;
    let retried = deployed(&control.api, "retried", &target, "").await;
    let ordered_target = FakeTarget::scripted(|_, _| Reply::Late(200)).await;
    let ordered = deployed(
        &control.api,
        "ordered",
        &ordered_target,
        "ordering_key: source.key\n",
    )
    .await;
    let records_target = FakeTarget::scripted(|request, _| {
        if number(request) < 20 {
            ok()
        } else {
            Reply::Late(200)
        }
    });
    let records_target = records_target.await;
    control
        .api
        .http_instance("erp", &records_target.url())
        .await;
    let import = control.api.deployed(batch_job::FLOW).await.0;
    let more_target = FakeTarget::start().await;
    let more = deployed(&control.api, "more", &more_target, "").await;

    let mut waiting = Vec::new();
    for n in 0..RETRYING {
        waiting.push(send(&b, &retried, n).await);
    }
    for id in &waiting {
        control.api.message_becomes(id, "retrying").await;
    }
    for n in 0..ORDERED {
        waiting.push(send(&b, &ordered, n).await);
    }
    ordered_target.arrivals(1).await;
    let job = batch_job::start(&control.api, &import, &batch_job::records(RECORDS), 4).await;
    until("a part of the records has ended", || async {
        let processed = batch_job::get(&control.api, &job).await["processed"]
            .as_u64()
            .unwrap();
        (processed >= 20).then_some(())
    })
    .await;
    records_target.arrivals(24).await;
    let backup = split.database.back_up().unwrap();

    // A node that holds messages of after the backup stands still, while the other one goes on past
    // its numbers.
    let mut lost = Vec::new();
    for n in 0..20 {
        lost.push(send(&b, &ordered, ORDERED + n).await);
    }
    b.signal("STOP").await;
    let before = ordered_target.received().len();
    split.database.restore(&backup).unwrap();
    let mut later = Vec::new();
    for n in 0..200 {
        later.push(send(&a, &more, n).await);
    }
    for id in &later {
        control.api.message_becomes(id, "delivered").await;
    }
    b.signal("CONT").await;
    for target in [&ordered_target, &records_target] {
        target.release();
    }
    up.store(true, Ordering::SeqCst);
    let keyed = send(&a, &ordered, ORDERED).await;
    for id in waiting.iter().chain([&keyed]) {
        control.api.message_becomes(id, "delivered").await;
    }
    let job = batch_job::finished(&control.api, &job).await;
    assert_eq!(job["succeeded"], RECORDS, "{job}");
    let records: HashSet<u64> = records_target.received().iter().map(number).collect();
    assert_eq!(records.len(), RECORDS);
    // The first one was under way when the log went back. It comes again where another node took it
    // over before its outcome was written, which still is its own.
    let mut order: Vec<u64> = ordered_target.received()[before..]
        .iter()
        .map(number)
        .collect();
    order.dedup();
    let again = usize::from(order.first() == Some(&0));
    assert_eq!(order[again..], (1..=ORDERED as u64).collect::<Vec<_>>());
    for id in &lost {
        assert_eq!(
            control
                .api
                .get(&format!("/api/v1/messages/{id}"))
                .await
                .status,
            404,
            "it is gone"
        );
    }
    until("both nodes find that the log went back", || async {
        [&a, &b]
            .iter()
            .all(|node| node.log().contains(PAST_CHANGED))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_operator_who_restored_a_database_has_nodes_drop_what_they_hold() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let node = split.node_with("a", &[&control], &[LEASE]).await;
    let target = refusing_once().await;
    let webhook = deployed(&control.api, "orders", &target, "").await;
    let id = send(&node, &webhook, 1).await;
    target.arrivals(1).await;
    let said = split.restore_point().await;
    until("the node drops what it holds", || async {
        node.log().contains(PAST_CHANGED).then_some(())
    })
    .await;
    assert!(
        said.starts_with("the configuration has epoch epoch_"),
        "{said}"
    );
    assert!(said.contains("the message log has epoch epoch_"), "{said}");
    // It is claimed anew, and delivered.
    control.api.message_becomes(&id, "delivered").await;
    target.release();
    let (_, later) = control
        .api
        .deployed(&passthrough("later").replace("connector: erp", "connector: orders"))
        .await;
    send(&node, &later, 2).await;
}
