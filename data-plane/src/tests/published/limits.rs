//! How much a key allows, on one node and on three that share a log.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::MessageLog;
use kanat_message_log::postgres::{self, PostgresLog};
use kanat_model::Timestamp;
use kanat_model::id::ConsumerKeyId;
use kanat_testing_postgres::Database;
use tokio::time::Instant;

use super::super::control::Control;
use super::*;

const BEARER: (&str, &str) = ("authorization", "Bearer secret");

/// The key `secret` of an API at `/things`.
fn limited(api: &mut PublishedApi, per_second: u32, per_day: u64) -> ConsumerKey {
    api.auth = "api_key".to_owned();
    ConsumerKey {
        rate_limit_per_second: per_second,
        daily_limit: per_day,
        ..key(api, "secret")
    }
}

async fn node_with(name: &str, per_second: u32, per_day: u64) -> Node {
    let node = Node::start().await;
    publish(&node, name, per_second, per_day).await;
    node
}

async fn publish(node: &Node, name: &str, per_second: u32, per_day: u64) {
    node.control.flow(&api_flow(name)).await;
    let mut api = api(name, "POST", "things");
    let key = limited(&mut api, per_second, per_day);
    node.control.api(&api).await;
    node.control.key(&key).await;
}

async fn call(node: &Node) -> Answer {
    node.ask("POST", "/things", &[JSON, BEARER], "{}").await
}

/// How often the key was used, as soon as that is so many times.
async fn used(log: &dyn MessageLog, count: u64) -> Timestamp {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let usage = log
            .key_usage(&[ConsumerKeyId::new("ck_secret")])
            .await
            .unwrap();
        match usage.first() {
            Some(usage) if usage.request_count == count => return usage.last_used_at,
            usage => assert!(Instant::now() < deadline, "{usage:?} of {count}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_day_is_used_up_and_stays_so_across_a_restart() {
    let node = node_with("daily", 0, 3).await;
    for left in ["2", "1", "0"] {
        let answer = call(&node).await;
        assert_eq!(answer.status.as_u16(), 202, "{}", answer.text);
        assert_eq!(
            answer.header("ratelimit-remaining"),
            left,
            "{}",
            answer.text
        );
        assert_eq!(answer.header("ratelimit-limit"), "3");
        assert_eq!(answer.header("ratelimit-policy"), "3;w=86400");
    }
    let refused = call(&node).await;
    assert_eq!(refused.status.as_u16(), 429);
    assert_eq!(refused.json()["code"].as_str(), Some("RESOURCE_EXHAUSTED"));
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(
        refused.header("ratelimit-reset"),
        refused.header("retry-after")
    );
    // What is refused for another reason is not counted either.
    assert_eq!(node.ask("POST", "/things", &[JSON], "{}").await.status, 401);

    let node = node.restart().await;
    assert_eq!(call(&node).await.status, 429);
    let at = used(node.log.as_ref(), 3).await;
    assert!(Timestamp::now().since(at) < Duration::from_secs(60));
    node.stop().await;
}

#[tokio::test]
async fn a_second_lets_in_as_many_as_the_key_allows() {
    let node = node_with("rate", 4, 1_000).await;
    // Far more than can be gained meanwhile, so that the test does not depend on its speed.
    let begun = Instant::now();
    let mut admitted = 0_u32;
    let refused = loop {
        let answer = call(&node).await;
        match answer.status.as_u16() {
            202 => admitted += 1,
            429 => break answer,
            other => panic!("{other}: {}", answer.text),
        }
    };
    let gained = begun.elapsed().as_secs_f64() * 4.0;
    assert!(
        admitted >= 4 && f64::from(admitted) <= 4.0 + gained,
        "{admitted}"
    );
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("ratelimit-limit"), "4");
    assert_eq!(refused.header("ratelimit-policy"), "4;w=1, 1000;w=86400");
    used(node.log.as_ref(), admitted.into()).await;
    // It is a matter of the key alone.
    assert_eq!(node.stored(), u64::from(admitted));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_on_one_log_never_let_in_more_than_the_key_allows_and_nearly_all_of_it() {
    const LIMIT: u32 = 100;
    const SECONDS: u64 = 8;
    let database = Database::fresh();
    let mut nodes = Vec::new();
    for name in ["one", "two", "three"] {
        let log = PostgresLog::open(database.url(), postgres::Options::default())
            .await
            .unwrap();
        let node = Node::beside(Arc::new(log), name, Control::new()).await;
        publish(&node, "shared", LIMIT, 1_000_000).await;
        nodes.push(node);
    }
    let begun = Instant::now();
    let until = begun + Duration::from_secs(SECONDS);
    // When each call that was let in began and ended: it was let in somewhere between.
    // Several at each node, so that more is asked for than is allowed also on a busy machine.
    let callers = nodes
        .iter()
        .flat_map(|node| [node, node, node])
        .map(async |node| {
            let mut admitted = Vec::new();
            let mut refused = 0_u32;
            while Instant::now() < until {
                let from = begun.elapsed();
                match call(node).await.status.as_u16() {
                    202 => admitted.push((from, begun.elapsed())),
                    429 => refused += 1,
                    other => panic!("{other}"),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            (admitted, refused)
        });
    let of_nodes = futures::future::join_all(callers).await;
    let counts: Vec<_> = of_nodes
        .iter()
        .map(|(admitted, refused)| (admitted.len(), *refused))
        .collect();
    let mut admitted: Vec<_> = of_nodes
        .into_iter()
        .flat_map(|(admitted, _)| admitted)
        .collect();
    println!(
        "limit {LIMIT}/s for {SECONDS} s: {} let in; let in and refused by caller: {counts:?}",
        admitted.len()
    );
    admitted.sort_unstable();
    let mut ends: Vec<Duration> = Vec::new();
    for (from, end) in admitted.iter().rev() {
        ends.insert(ends.partition_point(|other| other < end), *end);
        for (more, end) in ends.iter().enumerate() {
            let allowed = f64::from(LIMIT) * ((*end - *from).as_secs_f64() + 1.0);
            assert!(
                (more + 1) as f64 <= allowed + 1e-6,
                "{} calls in {:?}",
                more + 1,
                *end - *from
            );
        }
    }
    let least = u64::from(LIMIT) * SECONDS * 95 / 100;
    assert!(
        admitted.len() as u64 >= least,
        "{} of {least}",
        admitted.len()
    );
    let logs: Vec<_> = nodes.iter().map(|node| Arc::clone(&node.log)).collect();
    used(logs[0].as_ref(), admitted.len() as u64).await;
    for node in nodes {
        node.stop().await;
    }
}
