//! Bounds of one node, and of several that share their limits, by a clock that stands until all
//! wait.

use std::sync::atomic::Ordering;

use kanat_message_log::QuotaStore;
use kanat_model::id::NodeId;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::limit::test_store::Store;

/// Nodes with calls that wait for one connector, on one store.
struct Nodes {
    limiters: Vec<Arc<Limiter>>,
    /// When a call was made.
    made: Arc<Mutex<Vec<Instant>>>,
    tasks: JoinSet<()>,
}

impl Nodes {
    fn start(store: &Arc<Store>) -> (Self, Vec<Arc<Connectors>>) {
        let mut limiters = Vec::new();
        let mut tasks = JoinSet::new();
        let connectors = (0..store.nodes).map(|n| {
            let limiter = Arc::new(Limiter::new(
                Arc::clone(store) as Arc<dyn QuotaStore>,
                NodeId::new(format!("node_{n}")),
            ));
            tasks.spawn(Arc::clone(&limiter).run(CancellationToken::new()));
            limiters.push(Arc::clone(&limiter));
            Arc::new(Connectors::new(64, CancellationToken::new(), limiter))
        });
        let connectors = connectors.collect();
        (
            Self {
                limiters,
                made: Arc::default(),
                tasks,
            },
            connectors,
        )
    }

    /// So many callers of each node, each of which calls again and again.
    fn load(store: &Arc<Store>, config: &str, callers: &[usize]) -> Self {
        let (mut nodes, connectors) = Self::start(store);
        for (connectors, callers) in connectors.iter().zip(callers) {
            for _ in 0..*callers {
                let connectors = Arc::clone(connectors);
                let erp = instance(config);
                let made = Arc::clone(&nodes.made);
                nodes.tasks.spawn(async move {
                    loop {
                        let pass = connectors.acquire(&erp).await.unwrap();
                        made.lock().push(Instant::now());
                        sleep(Duration::from_millis(5)).await;
                        pass.record(Outcome::Success);
                    }
                });
            }
        }
        nodes
    }

    /// Lets so many seconds pass; gives the calls that were made in them.
    async fn pass(&self, seconds: u64) -> usize {
        let before = self.made.lock().len();
        sleep(Duration::from_secs(seconds)).await;
        self.made.lock().len() - before
    }

    /// No window of t seconds saw more than `per_second` x (t + 1) calls, one where the rate is
    /// less than one.
    fn are_within(&self, per_second: f64) {
        self.are_within_buckets(per_second, 1.0);
    }

    /// The same, with more than one bucket that was full.
    fn are_within_buckets(&self, per_second: f64, buckets: f64) {
        let made = self.made.lock();
        for (first, from) in made.iter().enumerate() {
            for (calls, until) in made[first..].iter().enumerate() {
                let most =
                    per_second * (*until - *from).as_secs_f64() + per_second.max(1.0) * buckets;
                assert!(
                    (calls + 1) as f64 <= most + 1e-6,
                    "{} calls in {:?}",
                    calls + 1,
                    *until - *from
                );
            }
        }
    }
}

fn instance(config: &str) -> Instance {
    Instance::new(
        "ci_1",
        "erp",
        "http",
        &format!(r#"{{"base_url":"https://erp.example"{config}}}"#),
    )
    .unwrap()
}

fn connectors() -> Connectors {
    let limiter = Limiter::new(Store::new(false, 1), NodeId::new("node_1"));
    Connectors::new(64, CancellationToken::new(), Arc::new(limiter))
}

#[tokio::test]
async fn no_more_calls_at_once_than_the_instance_takes() {
    let connectors = connectors();
    let erp = instance(r#","concurrency":2"#);
    let first = connectors.acquire(&erp).await.unwrap();
    let _second = connectors.acquire(&erp).await.unwrap();
    let mut third = Box::pin(connectors.acquire(&erp));
    assert!(futures::poll!(&mut third).is_pending());
    first.record(Outcome::Success);
    assert!(third.await.is_ok());
}

#[tokio::test]
async fn calls_beyond_the_rate_wait_for_their_turn_and_a_stop_ends_the_wait() {
    let connectors = connectors();
    let erp = instance(r#","requests_per_second":1"#);
    drop(connectors.acquire(&erp).await.unwrap());
    let mut second = Box::pin(connectors.acquire(&erp));
    assert!(futures::poll!(&mut second).is_pending());
    connectors.stopping.cancel();
    assert_eq!(second.await.err(), Some(Unavailable(Duration::ZERO)));
}

#[tokio::test]
async fn an_open_breaker_turns_away_and_survives_a_change_of_limits() {
    let connectors = connectors();
    let erp = instance(r#","breaker_failures":2,"breaker_seconds":60"#);
    for _ in 0..2 {
        assert_eq!(connectors.capacity(["ci_1"].into_iter()), Capacity::Full);
        connectors
            .acquire(&erp)
            .await
            .unwrap()
            .record(Outcome::Failure);
    }
    assert!(connectors.acquire(&erp).await.is_err());
    assert_eq!(
        connectors.capacity(["ci_2", "ci_1"].into_iter()),
        Capacity::None
    );
    assert_eq!(connectors.capacity(["ci_2"].into_iter()), Capacity::Full);
    assert!(
        connectors
            .acquire(&instance(r#","concurrency":5"#))
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_its_log_alone_keeps_the_rate_without_asking_it() {
    for (per_second, made) in [(20.0, [219, 200]), (2.5, [26, 25]), (0.5, [5, 5])] {
        let store = Store::new(false, 1);
        let config = format!(r#","requests_per_second":{per_second}"#);
        let one = Nodes::load(&store, &config, &[64]);
        let least = made.map(|made| made as f64 * 0.95);
        for least in least {
            let calls = one.pass(10).await as f64;
            assert!(calls >= least, "{calls} at {per_second}/s");
        }
        one.are_within(per_second);
        assert_eq!(store.exchanges.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_share_the_rate_of_a_connector_and_use_it() {
    for (per_second, callers) in [
        (20.0, [64, 64, 64]),
        (100.0, [64, 8, 1]),
        (100.0, [64, 0, 0]),
        (7.0, [9, 9, 9]),
        (2.5, [5, 5, 5]),
        (0.5, [2, 2, 2]),
    ] {
        let store = Store::new(true, 3);
        let three = Nodes::load(
            &store,
            &format!(r#","requests_per_second":{per_second}"#),
            &callers,
        );
        let calls = three.pass(40).await;
        three.are_within(per_second);
        let exchanges = store.exchanges.load(Ordering::SeqCst);
        println!("{per_second}/s, callers {callers:?}: {calls} in 40 s, {exchanges} exchanges");
        assert!(
            calls as f64 >= per_second * 40.0 * 0.9,
            "{calls} at {per_second}/s with {callers:?}"
        );
        assert!(exchanges <= 40 * 3 * 16, "{exchanges} exchanges");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_alone_at_a_shared_log_keeps_the_rate_and_writes_to_the_log_once_a_second() {
    let store = Store::new(true, 1);
    let one = Nodes::load(&store, r#","requests_per_second":20"#, &[64]);
    assert!(one.pass(30).await >= 600);
    one.are_within(20.0);
    let exchanges = store.exchanges.load(Ordering::SeqCst);
    assert!(exchanges <= 33, "{exchanges} in 30 s");
}

#[tokio::test(start_paused = true)]
async fn without_the_log_each_node_goes_by_its_part_and_waits_without_losing_a_call() {
    let store = Store::new(true, 3);
    let three = Nodes::load(&store, r#","requests_per_second":30"#, &[64, 64, 64]);
    three.pass(5).await;
    store.away.store(true, Ordering::SeqCst);
    let away = three.pass(20).await;
    assert!((30 * 15..=30 * 21).contains(&away), "{away} in 20 s");
    three.are_within(30.0);
    store.away.store(false, Ordering::SeqCst);
    three.pass(3).await;
    assert!(three.pass(10).await >= 270);
    // What nobody was known to hold meanwhile is there, too.
    three.are_within_buckets(30.0, 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_knows_no_others_calls_nobody_until_it_does() {
    let store = Store::new(true, 3);
    store.away.store(true, Ordering::SeqCst);
    let three = Nodes::load(&store, r#","requests_per_second":20"#, &[4, 4, 4]);
    assert_eq!(three.pass(30).await, 0);
    store.away.store(false, Ordering::SeqCst);
    assert!(three.pass(10).await >= 180);
    three.are_within(20.0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_rate_holds_for_calls_that_wait_and_they_go_as_they_came() {
    let store = Store::new(true, 1);
    let slow = r#","requests_per_second":0.001"#;
    let (mut nodes, connectors) = Nodes::start(&store);
    drop(connectors[0].acquire(&instance(slow)).await.unwrap());
    let order = Arc::new(Mutex::new(Vec::new()));
    for n in 0..10 {
        let connectors = Arc::clone(&connectors[0]);
        let order = Arc::clone(&order);
        nodes.tasks.spawn(async move {
            drop(connectors.acquire(&instance(slow)).await.unwrap());
            order.lock().push(n);
        });
        sleep(Duration::from_millis(1)).await;
    }
    nodes.pass(5).await;
    assert!(order.lock().is_empty());
    drop(
        connectors[0]
            .acquire(&instance(r#","requests_per_second":10"#))
            .await
            .unwrap(),
    );
    assert_eq!(*order.lock(), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_connectors_that_nobody_calls() {
    for (is_shared, config) in [
        (true, r#","requests_per_second":20"#),
        (false, r#","requests_per_second":0.2"#),
    ] {
        let store = Store::new(is_shared, 1);
        let (nodes, connectors) = Nodes::start(&store);
        drop(connectors[0].acquire(&instance(config)).await.unwrap());
        nodes.pass(2).await;
        assert_eq!(nodes.limiters[0].keys(), 1);
        nodes.pass(8).await;
        assert_eq!(nodes.limiters[0].keys(), 0, "shared: {is_shared}");
    }
}
