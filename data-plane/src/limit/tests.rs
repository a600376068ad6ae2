//! The limiter before a store that fails, is slow, or has much to do, by a clock that stands until
//! all wait.

use std::sync::atomic::Ordering;

use futures::future::join_all;
use kanat_model::id::ConsumerKeyId;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::test_store::Store;
use super::*;

struct Node {
    limiter: Arc<Limiter>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Node {
    /// Starts a limiter, and waits until it has read the number of nodes.
    async fn start(store: &Arc<Store>) -> Self {
        let limiter = Arc::new(Limiter::new(
            Arc::clone(store) as Arc<dyn QuotaStore>,
            NodeId::new("node_1"),
        ));
        let stop = CancellationToken::new();
        let task = TaskTracker::new().spawn(Arc::clone(&limiter).run(stop.clone()));
        sleep(Duration::from_millis(500)).await;
        Self {
            limiter,
            stop,
            task,
        }
    }

    async fn call(&self, key: &str, limits: Limits) -> bool {
        self.limiter.check(&consumer(key), limits).await.is_ok()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn consumer(id: &str) -> Key {
    ConsumerKeyId::new(id).into()
}

fn per_second(calls: u32) -> Limits {
    Limits::per_second_and_day(calls, 0)
}

#[tokio::test(start_paused = true)]
async fn no_call_waits_for_an_unreachable_store_however_many_keys_are_in_use() {
    let store = Store::new(true, 3);
    let node = Node::start(&store).await;
    store.away.store(true, Ordering::SeqCst);
    let keys: Vec<String> = (0..3 * MAX_REQUESTS).map(|n| format!("ck_{n}")).collect();
    let calls = join_all(keys.iter().map(|key| node.call(key, per_second(10))));
    let answers = timeout(Duration::from_secs(60), calls).await;
    assert_eq!(answers.map(|answers| answers.len()), Ok(keys.len()));
    node.stop().await;
}

#[tokio::test(start_paused = true)]
async fn usage_is_reported_at_a_stop_after_an_outage() {
    let store = Store::new(true, 1);
    let node = Node::start(&store).await;
    for _ in 0..5 {
        assert!(node.call("ck_1", per_second(10)).await);
    }
    store.away.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(store.used.load(Ordering::SeqCst), 0);
    store.away.store(false, Ordering::SeqCst);
    node.stop().await;
    assert_eq!(store.used.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_new_key_is_answered_when_the_limiter_ends() {
    let store = Store::new(true, 3);
    let node = Node::start(&store).await;
    assert!(node.call("ck_1", per_second(10)).await);
    *store.delay.lock() = Duration::from_millis(1_500);
    let limiter = Arc::clone(&node.limiter);
    let late_call = TaskTracker::new().spawn(async move {
        sleep(Duration::from_secs(1)).await;
        limiter.check(&consumer("ck_2"), per_second(10)).await
    });
    node.stop().await;
    let answer = timeout(Duration::from_secs(60), late_call).await;
    assert!(answer.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_keys_are_dropped_also_while_calls_ask_the_store_all_the_time() {
    let store = Store::new(true, 3);
    let node = Node::start(&store).await;
    // While the request of one caller is on its way, that of the other one is queued.
    let load = join_all(["a", "b"].map(async |caller| {
        if caller == "b" {
            sleep(Duration::from_millis(1)).await;
        }
        for call in 0.. {
            assert!(
                node.call(&format!("ck_{caller}{call}"), per_second(10))
                    .await
            );
        }
    }));
    assert!(timeout(Duration::from_secs(10), load).await.is_err());
    let calls = store.used.load(Ordering::SeqCst);
    let keys = node.limiter.keys() as u64;
    assert!(keys < calls / 2, "{keys} keys after {calls} calls");
    node.stop().await;
}
