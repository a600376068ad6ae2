//! One slow target slows only itself, and a node that stops leaves nothing behind.

use std::time::Duration;

use kanat_model::message::Status;

use super::node::{Node, flow, tenant};
use super::target::Target;

/// More than a lane takes in.
const MANY: usize = 1200;

#[tokio::test]
async fn a_target_that_hangs_does_not_hold_up_the_messages_of_others() {
    let node = Node::start().await;
    let stuck = Target::start().await;
    let quick = Target::start().await;
    stuck.hang();
    node.deploy(&flow("stuck"), &stuck.url).await;
    node.deploy(&flow("quick"), &quick.url).await;

    let waiting =
        futures::future::join_all((0..MANY).map(|_| node.accepted("t-stuck", "{}"))).await;
    stuck.arrivals(64).await;
    let delivered =
        futures::future::join_all((0..100).map(|_| node.accepted("t-quick", "{}"))).await;
    for id in &delivered {
        assert_eq!(node.finished(id).await.status, Status::Delivered);
    }
    assert_eq!(quick.received().len(), 100);
    // No more than so many at once, and none of them lost.
    assert_eq!(stuck.received().len(), 64);
    stuck.release();
    for id in &waiting {
        assert_eq!(node.finished(id).await.status, Status::Delivered);
    }
    assert_eq!(stuck.received().len(), MANY);
    node.stop().await;
    stuck.stop().await;
    quick.stop().await;
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_hands_the_rest_back() {
    let node = Node::start().await;
    let target = Target::start().await;
    target.hang();
    node.deploy(&flow("slow"), &target.url).await;
    let ids = futures::future::join_all((0..80).map(|_| node.accepted("t-slow", "{}"))).await;
    target.arrivals(64).await;
    let service = node.plane.service();
    let drain = node.plane.drain(Duration::from_secs(60));
    let released = async {
        // Whoever comes now is sent away.
        loop {
            let answer =
                tower::ServiceExt::oneshot(service.clone(), super::node::webhook("t-slow", "{}"))
                    .await
                    .unwrap();
            if answer.status() == 503 {
                break;
            }
            tokio::task::yield_now().await;
        }
        target.release();
    };
    tokio::join!(drain, released);
    let mut delivered = 0;
    for id in &ids {
        let message = node.log.get(&tenant(), id).await.unwrap().unwrap();
        match message.status {
            Status::Delivered => delivered += 1,
            // Not begun: for another node.
            _ => assert_eq!(message.attempts, 0),
        }
    }
    assert_eq!(delivered, 64);
    assert_eq!(node.log.waiting().await.unwrap()[0].due, 16);
    node.log.close().await;
    target.stop().await;
}

#[tokio::test]
async fn a_drain_whose_time_is_over_hands_back_what_is_in_flight() {
    let node = Node::start().await;
    let target = Target::start().await;
    target.hang();
    node.deploy(&flow("endless"), &target.url).await;
    let id = node.accepted("t-endless", "{}").await;
    target.arrivals(1).await;
    node.plane.drain(Duration::from_millis(1)).await;
    assert_eq!(node.log.waiting().await.unwrap()[0].due, 1);
    assert_eq!(
        node.log
            .get(&tenant(), &id)
            .await
            .unwrap()
            .unwrap()
            .attempts,
        0
    );
    node.log.close().await;
    target.stop().await;
}
