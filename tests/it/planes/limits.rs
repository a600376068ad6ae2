//! Limits and the end of consumer keys, and the rate of a connector, at three nodes that share one
//! PostgreSQL, while their control plane is stopped, and while the database stands still.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_testing_postgres::{Cluster, Durability, Programs};
use kanat_tests::calls::Calls;
use kanat_tests::rest::text;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::target::ok;
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::published_api::{PATH, quote};

/// Calls a second of the key that is used most, and as many as are tried.
const LIMIT: u32 = 100;
const TRIED: u32 = 220;

/// How long it is used so.
const SECONDS: u64 = 30;

/// How long the database stands still after that: longer than what nodes hold of a limit is theirs.
const STILL: Duration = Duration::from_secs(6);

/// Calls a day of another key.
const DAILY: usize = 12;

const ORDERS: &str = "/v1/orders";

/// Calls a second that a connector takes, and messages for it at each node: more than it takes in
/// that time.
const RATE: u32 = 20;
const WAITING: usize = 230;

/// A call is counted before it is seen to arrive, by a machine that has much to do so long before
/// at most.
const MAX_ARRIVAL_DELAY: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_keep_limits_and_graces_without_their_control_plane_and_without_their_database()
{
    let cluster =
        Cluster::start(Programs::find_or_install().unwrap(), Durability::InMemory).unwrap();
    cluster.create_database("kanat").unwrap();
    let database = cluster.url("kanat");
    let split = Split::new();
    let shared = [("KANAT_DATABASE_URL", database.as_str())];
    let mut control = split.control_plane_with("control", &shared).await;
    let mut nodes = [
        split.node_with("a", &[&control], &shared).await,
        split.node_with("b", &[&control], &shared).await,
        split.node_with("c", &[&control], &shared).await,
    ];
    control.api.deployed(&quote("quotes")).await;
    let body = json!({"flowName": "quotes", "path": "orders", "responseSchema": true});
    let keys = format!(
        "{PATH}/{}/keys",
        text(&control.api.post(PATH, &body).await.expect(201)["id"])
    );
    let busy = made(
        &control,
        &keys,
        json!({"consumer": "busy", "rateLimitPerSecond": LIMIT}),
    )
    .await;
    let daily = made(
        &control,
        &keys,
        json!({"consumer": "daily", "dailyLimit": DAILY}),
    )
    .await;
    let old = made(&control, &keys, json!({"consumer": "rotated"})).await;
    let rotate = format!("{keys}/{}/rotate", text(&old["id"]));
    let new = control
        .api
        .post(&rotate, &json!({"gracePeriod": "8s"}))
        .await
        .expect(200);
    let ends = key(&control, &keys, &old).await["expiresAt"].clone();
    let ends = Timestamp::parse(&text(&ends)).unwrap();
    let (rated, webhook) = RateLimitedTarget::deployed(&control).await;
    control.kill().await;

    // A day's calls are as many as they are, whichever node is asked, and a node that comes again
    // does not count anew.
    let mut of_day = Calls::default();
    let at =
        |nodes: &[TestProcess; 3], key: &Value| nodes.each_ref().map(|node| consumer(node, key));
    for _ in 0..DAILY / 3 + 2 {
        for consumer in &at(&nodes, &daily) {
            of_day.make_one(consumer, ORDERS).await;
        }
    }
    assert_eq!(of_day.admitted.len(), DAILY);
    assert_eq!(of_day.refused.len(), 6);
    assert_eq!(nodes[2].terminate().await, Some(0));
    nodes[2].restart().await;
    nodes[2].becomes_ready().await;
    assert_eq!(
        of_day.make_one(&consumer(&nodes[2], &daily), ORDERS).await,
        429
    );

    let consumers = at(&nodes, &busy);
    let begun = Instant::now();
    let end = begun + Duration::from_secs(SECONDS);
    let (mut calls, graces, ()) = tokio::join!(
        Calls::make(&consumers, ORDERS, TRIED, end),
        futures::future::join_all(nodes.iter().map(|node| grace_ends(node, &old, &new, ends))),
        wait_for_their_turn(&nodes, &webhook),
    );
    rated.was_used(begun, end);
    let had = calls.admitted.len();
    let of = calls.max_allowed(LIMIT);
    println!(
        "limit {LIMIT}/s, 3 nodes, {SECONDS} s: {had} calls let in of {of}, {} refused, {} at \
         most in a second; a rotated key was refused {graces:?} ms after its deadline",
        calls.refused.len(),
        calls.peak_per_second()
    );
    assert!(had * 100 >= of * 95, "{had} of {of}");

    cluster.pause().unwrap();
    let away = Calls::make(&consumers, ORDERS, TRIED, Instant::now() + STILL).await;
    println!(
        "the database stood still for {STILL:?}: {} let in, {} refused",
        away.admitted.len(),
        away.refused.len()
    );
    cluster.resume().unwrap();
    assert!(!away.admitted.is_empty() && !away.refused.is_empty());
    calls.add(away);
    calls.assert_within(LIMIT);
    rated.arrived().assert_within(RATE);

    // What was let in is what was counted, no more and no less.
    control.restart().await;
    for (key, calls) in [(&busy, &calls), (&daily, &of_day)] {
        is_counted(&control, &keys, key, calls).await;
    }
}

/// A target that counts what it is sent, by all nodes, through a connector with a rate.
struct RateLimitedTarget {
    _target: FakeTarget,
    arrivals: Arc<Mutex<Vec<Instant>>>,
}

impl RateLimitedTarget {
    /// The target and the path of the webhook of a flow to it.
    async fn deployed(control: &TestProcess) -> (Self, String) {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let arrived = Arc::clone(&arrivals);
        let target = FakeTarget::scripted(move |_, _| {
            arrived.lock().unwrap().push(Instant::now());
            ok()
        });
        let target = target.await;
        let config = json!({"base_url": target.url(), "auth": "none", "requests_per_second": RATE});
        let body = json!({"catalogId": "http", "name": "rated", "config": config});
        control
            .api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        let flow = r"flow: rated
version: 1
source: {trigger: webhook}
target: {connector: rated, endpoint: /in, method: POST}
";
        let (_, webhook) = control.api.deployed(flow).await;
        (
            Self {
                _target: target,
                arrivals,
            },
            webhook,
        )
    }

    /// Each arrival with the time in which it was counted.
    fn arrived(&self) -> Calls {
        let arrivals = self.arrivals.lock().unwrap();
        let admitted = arrivals
            .iter()
            .map(|at| (at.checked_sub(MAX_ARRIVAL_DELAY).unwrap(), *at))
            .collect();
        Calls {
            admitted,
            ..Calls::default()
        }
    }

    fn was_used(&self, begun: Instant, end: Instant) {
        let calls = self.arrived();
        calls.assert_within(RATE);
        let of = (end - begun).as_secs_f64() * f64::from(RATE);
        let had = calls.admitted.len();
        let most = calls.peak_per_second();
        println!(
            "rate {RATE}/s, 3 nodes: {had} calls arrived of {of}, {most} at most in half a second"
        );
        assert!(had as f64 >= of * 0.8, "{had} of {of}");
    }
}

/// Gives each node as many messages as wait for the connector for all of the time.
async fn wait_for_their_turn(nodes: &[TestProcess; 3], webhook: &str) {
    let posts = nodes.iter().map(async |node| {
        for n in 0..WAITING {
            node.api
                .webhook(&format!("{}{webhook}", node.base), &json!({ "n": n }))
                .await;
        }
    });
    futures::future::join_all(posts).await;
}

async fn made(control: &TestProcess, keys: &str, body: Value) -> Value {
    control.api.post(keys, &body).await.expect(201)
}

fn consumer(node: &TestProcess, key: &Value) -> Rest {
    node.api.with_key(&text(&key["key"]))
}

/// The key as it is listed now.
async fn key(control: &TestProcess, keys: &str, key: &Value) -> Value {
    let list = control.api.get(keys).await.expect(200);
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|each| each["id"] == key["id"])
        .unwrap()
        .clone()
}

/// Calls until a second after the end of the old key; gives after how many milliseconds it was
/// first seen refused.
async fn grace_ends(node: &TestProcess, old: &Value, new: &Value, ends: Timestamp) -> i64 {
    let old = consumer(node, old);
    let new = consumer(node, new);
    let mut in_the_last_second = 0;
    let mut refused_at = None;
    let mut beat = tokio::time::interval(Duration::from_millis(100));
    loop {
        beat.tick().await;
        let begun = Timestamp::now();
        let status = old.post(ORDERS, &json!({})).await.status;
        let answered = Timestamp::now();
        if answered < ends {
            assert_eq!(status, 200, "{begun} is before {ends}");
            in_the_last_second += i32::from(ends.since(begun) <= Duration::from_secs(1));
        }
        if status == 401 {
            refused_at = refused_at.or(Some(answered));
        }
        if begun >= ends {
            assert_eq!(status, 401, "{begun} is not before {ends}");
        }
        if begun >= ends.after(Duration::from_secs(1)) {
            break;
        }
    }
    assert!(
        in_the_last_second > 0,
        "nobody called in the last second of the grace"
    );
    assert_eq!(new.post(ORDERS, &json!({})).await.status, 200);
    refused_at.map_or(0, |at| at.as_millis() - ends.as_millis())
}

/// Waits until `requestCount` and `lastUsedAt` count these calls and no others.
async fn is_counted(control: &TestProcess, keys: &str, of: &Value, calls: &Calls) {
    let count = calls.admitted.len();
    let seen = until(
        &format!("{count} calls with {} are counted", of["consumer"]),
        || async {
            let seen = key(control, keys, of).await;
            (seen["requestCount"] == count).then_some(seen)
        },
    )
    .await;
    let told = Timestamp::parse(&text(&seen["lastUsedAt"])).unwrap();
    let last = calls.last.unwrap();
    let apart = (told.as_millis() - last.as_millis()).abs();
    assert!(apart < 5_000, "last used at {last}, and {told} is told");
}
