//! What connectors are given: so many calls at once, so many a second, and none while they fail at everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kanat_model::message::Status;

use super::node::{Node, flow};
use super::target::{Target, status};

async fn deploy(node: &Node, name: &str, instance: &str) {
    let mut plan = flow(name);
    if let Some(target) = &mut plan.target {
        target.instance = instance.to_owned();
    }
    node.control.flow(&plan).await;
}

#[tokio::test]
async fn flows_share_the_concurrency_of_their_connector() {
    let (node, target) = (Node::start().await, Target::start().await);
    target.hang();
    let config = format!(r#"{{"base_url":"{}","concurrency":3}}"#, target.url);
    node.control.instance("ci_shared", &config).await;
    deploy(&node, "one", "ci_shared").await;
    deploy(&node, "two", "ci_shared").await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(node.accepted(if n % 2 == 0 { "t-one" } else { "t-two" }, "{}").await);
    }
    target.arrivals(3).await;
    assert_eq!(target.received().len(), 3);
    target.release();
    for id in &ids {
        let message = node.finished(id).await;
        assert_eq!((message.status, message.attempts), (Status::Delivered, 1));
    }
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn no_more_calls_a_second_than_the_connector_takes() {
    let (node, target) = (Node::start().await, Target::start().await);
    let config = format!(r#"{{"base_url":"{}","requests_per_second":20}}"#, target.url);
    node.control.instance("ci_rated", &config).await;
    deploy(&node, "rated", "ci_rated").await;
    let begun = Instant::now();
    let ids = futures::future::join_all((0..50).map(|_| node.accepted("t-rated", "{}"))).await;
    for id in &ids {
        let message = node.finished(id).await;
        assert_eq!((message.status, message.attempts), (Status::Delivered, 1));
    }
    // Twenty at once, and the thirty others one every 50 ms: a slow machine takes longer, none takes less.
    assert!(begun.elapsed() >= Duration::from_millis(1_450), "{:?}", begun.elapsed());
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn messages_wait_for_a_connector_that_fails_and_lose_no_attempt_by_it() {
    let node = Node::start().await;
    let (healed, other) = (Arc::new(AtomicBool::new(false)), Target::start().await);
    let target = {
        let healed = Arc::clone(&healed);
        Target::answering(move |_, _| status(if healed.load(Ordering::SeqCst) { 200 } else { 503 })).await
    };
    let config = format!(r#"{{"base_url":"{}","breaker_failures":3,"breaker_seconds":0.2}}"#, target.url);
    node.control.instance("ci_ill", &config).await;
    deploy(&node, "ill", "ci_ill").await;
    node.deploy(&flow("well"), &other.url).await;
    // Three messages of four attempts each are enough to open it; the rest finds it open.
    let ids = futures::future::join_all((0..40).map(|_| node.accepted("t-ill", "{}"))).await;
    target.arrivals(3).await;
    let well = node.accepted("t-well", "{}").await;
    assert_eq!(node.finished(&well).await.status, Status::Delivered);
    healed.store(true, Ordering::SeqCst);
    let mut attempts = 0;
    for id in &ids {
        let message = node.finished(id).await;
        assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
        attempts += message.attempts;
    }
    // Every call that was made is an attempt, and nothing else is one.
    assert_eq!(usize::try_from(attempts).unwrap(), target.received().len());
    node.stop().await;
    target.stop().await;
    other.stop().await;
}
