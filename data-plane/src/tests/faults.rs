//! A lease that goes to another, and a disk that is full: nothing is lost, and nothing is done
//! twice under one lease.

use std::time::Duration;

use kanat_message_log::sqlite;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use kanat_model::message::Status;

use super::node::{Node, flow};
use super::target::Target;

#[tokio::test]
async fn a_node_whose_lease_went_to_another_stops_and_takes_up_what_is_left_anew() {
    let node = Node::with(|options| options.lease = Duration::from_secs(1)).await;
    let target = Target::start().await;
    target.hang();
    node.deploy(&flow("torn"), &target.url).await;
    let id = node.accepted("t-torn", "{}").await;
    target.arrivals(1).await;

    // Another boot of this node ends the lease of the first, and dies at once.
    let other = BootId::generate();
    node.log
        .open_lease(&other, &NodeId::new("node_1"), Duration::from_secs(60))
        .await
        .unwrap();
    node.log.hand_back(&other).await.unwrap();
    target.arrivals(2).await;
    target.release();

    let message = node.finished(&id).await;
    // The attempt that was cut off counts for nothing.
    assert_eq!(message.status, Status::Delivered);
    assert_eq!(message.attempts, 1);
    // Before it learned of its loss, the node may have taken its own message up once more.
    let received = target.received();
    assert!(
        received
            .iter()
            .all(|request| request.headers["idempotency-key"] == id.as_str())
    );
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_full_disk_refuses_new_messages_and_loses_no_outcome() {
    let node = Node::with_log(sqlite::Options {
        max_pages: Some(200),
        ..sqlite::Options::default()
    })
    .await;
    let target = Target::start().await;
    node.deploy(&flow("full"), &target.url).await;
    let body = format!("{{\"filler\":\"{}\"}}", "x".repeat(20_000));
    // Some are delivered, and can make room later.
    for _ in 0..20 {
        let id = node.accepted("t-full", body.clone()).await;
        assert_eq!(node.finished(&id).await.status, Status::Delivered);
    }
    target.hang();
    let mut accepted = Vec::new();
    let refused = loop {
        let answer = node.post("t-full", body.clone()).await;
        if answer.status != 202 {
            break answer;
        }
        accepted.push(answer.id("accepted"));
    };
    assert_eq!(refused.status.as_u16(), 503, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "5", "{}", refused.text);
    assert!(!accepted.is_empty());
    target.release();
    // Until the disk has room again, an outcome may wait; it is written as soon as it has.
    assert!(node.log.retain(Timestamp::now()).await.unwrap() >= 20);
    for id in &accepted {
        assert_eq!(node.finished(id).await.status, Status::Delivered);
    }
    // One request for each: no outcome was forgotten, and no message sent again for it.
    assert_eq!(target.received().len(), 20 + accepted.len());
    assert_eq!(node.post("t-full", "{}").await.status, 202);
    node.stop().await;
    target.stop().await;
}
