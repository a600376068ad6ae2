//! Limits of connectors: concurrent calls, rate, and circuit breaker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Response;
use kanat_model::message::Status;
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{FlowPlan, Pagination, Poll, Retry, Trigger};

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
    let node = Node::start().await;
    let target = Target::start().await;
    target.hang();
    let config = format!(r#"{{"base_url":"{}","concurrency":3}}"#, target.url);
    node.control.instance("ci_shared", &config).await;
    deploy(&node, "one", "ci_shared").await;
    deploy(&node, "two", "ci_shared").await;
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(
            node.accepted(if n % 2 == 0 { "t-one" } else { "t-two" }, "{}")
                .await,
        );
    }
    target.arrivals(3).await;
    assert_eq!(target.received().len(), 3);
    target.release();
    for id in &ids {
        let message = node.finished(id).await;
        assert_eq!(message.status, Status::Delivered);
        assert_eq!(message.attempts, 1);
    }
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn no_more_calls_a_second_than_the_connector_takes() {
    let node = Node::start().await;
    let target = Target::start().await;
    let config = format!(
        r#"{{"base_url":"{}","requests_per_second":20}}"#,
        target.url
    );
    node.control.instance("ci_rated", &config).await;
    deploy(&node, "rated", "ci_rated").await;
    let begun = Instant::now();
    let ids = futures::future::join_all((0..50).map(|_| node.accepted("t-rated", "{}"))).await;
    for id in &ids {
        let message = node.finished(id).await;
        assert_eq!(message.status, Status::Delivered);
        assert_eq!(message.attempts, 1);
    }
    // Twenty at once, and the thirty others one every 50 ms: a slow machine takes longer, none
    // takes less.
    assert!(
        begun.elapsed() >= Duration::from_millis(1_450),
        "{:?}",
        begun.elapsed()
    );
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn messages_wait_for_a_connector_that_fails_and_lose_no_attempt_by_it() {
    let node = Node::start().await;
    let healed = Arc::new(AtomicBool::new(false));
    let other = Target::start().await;
    let target = {
        let healed = Arc::clone(&healed);
        Target::answering(move |_, _| {
            status(if healed.load(Ordering::SeqCst) {
                200
            } else {
                503
            })
        })
        .await
    };
    let config = format!(
        r#"{{"base_url":"{}","breaker_failures":3,"breaker_seconds":0.2}}"#,
        target.url
    );
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

/// A flow that polls `/orders` of an instance, page by page for ever, and delivers nothing.
pub(super) fn polling(instance: &str, max_pages: u32) -> FlowPlan {
    let pagination = Pagination {
        strategy: "cursor".to_owned(),
        max_pages,
        cursor_path: "next".to_owned(),
        cursor_param: "cursor".to_owned(),
        ..Pagination::default()
    };
    let poll = Poll {
        url: "{{ instance.base_url }}/orders".to_owned(),
        method: "GET".to_owned(),
        records_path: "data".to_owned(),
        pagination: Some(pagination),
        interval_ms: 86_400_000,
        ..Poll::default()
    };
    let trigger = Some(Trigger {
        kind: Some(Kind::Poll(poll)),
    });
    FlowPlan {
        trigger,
        source_instance: instance.to_owned(),
        ..flow("polled")
    }
}

/// A page with one record, and the cursor of the next one.
pub(super) fn page(n: usize) -> Response<&'static str> {
    let body = format!(r#"{{"data":[{{"id":{n}}}],"next":"c{n}"}}"#);
    Response::new(Box::leak(body.into_boxed_str()))
}

pub(super) async fn stored(node: &Node, count: u64) {
    let mut changed = node.log.changed();
    while node.stored() < count {
        changed.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_poll_asks_for_no_more_pages_a_second_than_its_connector_takes() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    let config = format!(
        r#"{{"base_url":"{}","requests_per_second":20}}"#,
        provider.url
    );
    node.control.instance("ci_shop", &config).await;
    let begun = Instant::now();
    node.deploy(&polling("ci_shop", 50), &sink.url).await;
    stored(&node, 50).await;
    assert!(
        begun.elapsed() >= Duration::from_millis(1_400),
        "{:?}",
        begun.elapsed()
    );
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn a_poll_waits_for_a_place_at_its_connector_and_holds_up_no_other_poll() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let busy = Target::answering(|n, _| page(n)).await;
    let idle = Target::answering(|n, _| page(n)).await;
    busy.hang();
    node.control
        .instance(
            "ci_busy",
            &format!(r#"{{"base_url":"{}","concurrency":1}}"#, busy.url),
        )
        .await;
    node.control
        .instance("ci_idle", &format!(r#"{{"base_url":"{}"}}"#, idle.url))
        .await;
    deploy(&node, "order", "ci_busy").await;
    let order = node.accepted("t-order", "{}").await;
    busy.arrivals(1).await;
    // More of them than a node has cycles with an answer in memory.
    for n in 0..20 {
        node.deploy(
            &FlowPlan {
                flow_id: format!("flw_busy_{n}"),
                ..polling("ci_busy", 1)
            },
            &sink.url,
        )
        .await;
    }
    node.deploy(
        &FlowPlan {
            flow_id: "flw_idle".to_owned(),
            ..polling("ci_idle", 1)
        },
        &sink.url,
    )
    .await;
    stored(&node, 2).await;
    assert_eq!(busy.received().len(), 1);
    assert_eq!(idle.received().len(), 1);
    busy.release();
    stored(&node, 22).await;
    assert_eq!(node.finished(&order).await.attempts, 1);
    for target in [busy, idle, sink] {
        target.stop().await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_poll_waits_until_the_breaker_of_its_connector_lets_it_try_and_goes_on_where_it_was() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let shop = {
        let calls = Arc::clone(&calls);
        Target::answering(move |n, received| {
            calls
                .lock()
                .unwrap()
                .push((received.path.clone(), Instant::now()));
            if received.path.starts_with("/in") {
                status(503)
            } else {
                page(n)
            }
        })
        .await
    };
    let config = format!(
        r#"{{"base_url":"{}","breaker_failures":2,"breaker_seconds":1}}"#,
        shop.url
    );
    node.control.instance("ci_shop", &config).await;
    let mut failing = flow("failing");
    failing.target.as_mut().unwrap().instance = "ci_shop".to_owned();
    failing.retry = Some(Retry {
        count: 1,
        duration_ms: 1,
        ..Retry::default()
    });
    node.control.flow(&failing).await;
    let dead = node.accepted("t-failing", "{}").await;
    assert_eq!(node.finished(&dead).await.status, Status::DeadLetter);
    // It is open now.
    node.deploy(&polling("ci_shop", 3), &sink.url).await;
    stored(&node, 4).await;
    let calls = calls.lock().unwrap().clone();
    let paths: Vec<&str> = calls.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/in",
            "/in",
            "/orders",
            "/orders?cursor=c2",
            "/orders?cursor=c3"
        ]
    );
    assert!(
        calls[2].1 - calls[1].1 >= Duration::from_millis(950),
        "{:?}",
        calls[2].1 - calls[1].1
    );
    node.stop().await;
    shop.stop().await;
    sink.stop().await;
}
