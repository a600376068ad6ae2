//! What the fault tests count: senders that post again until they are answered, and a target that fails some messages
//! once. An acked message that the target never took is lost; one that it took more than once is a duplicate.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::json;
use tokio::task::JoinSet;

pub const SENDERS: usize = 16;
/// Requests that a node sends one target at once.
pub const LANE: usize = 64;

pub const FLOW: &str = "flow: survivors
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  n: source.n
on_error:
  retry: 20x fixed(50ms)
";

/// Takes every message, each third number only at its second attempt.
pub async fn target() -> FakeTarget {
    let failed = Mutex::new(HashSet::new());
    FakeTarget::scripted(move |received, _| {
        let n = received.json()["n"].as_u64().unwrap();
        if n.is_multiple_of(3) && failed.lock().unwrap().insert(n) { status(503) } else { ok() }
    })
    .await
}

/// Takes every message, but hangs at the `at`-th request, counted from 1.
pub async fn target_that_hangs(at: &'static [usize]) -> FakeTarget {
    FakeTarget::scripted(move |_, earlier| if at.contains(&(earlier + 1)) { Reply::Hang } else { ok() }).await
}

/// Senders under way.
pub struct Senders {
    acked: Arc<Mutex<HashMap<String, usize>>>,
    sent_again: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Senders {
    /// Posts the numbers from 0 to `messages`, each until it is acked, to one of the addresses after another.
    pub fn start(api: &Rest, urls: &[String], messages: usize) -> Self {
        Self::start_while(api, urls, move |n| n < messages)
    }

    /// Posts numbers as long as `wanted` says so.
    pub fn start_while(api: &Rest, urls: &[String], wanted: impl Fn(usize) -> bool + Clone + Send + 'static) -> Self {
        let (acked, sent_again) = (Arc::new(Mutex::new(HashMap::new())), Arc::new(AtomicUsize::new(0)));
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for sender in 0..SENDERS {
            let (api, urls, next) = (api.clone(), urls.to_vec(), Arc::clone(&next));
            let (acked, sent_again, wanted) = (Arc::clone(&acked), Arc::clone(&sent_again), wanted.clone());
            tasks.spawn(async move {
                let turn = AtomicUsize::new(sender);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if !wanted(n) {
                        return;
                    }
                    let payload = json!({ "n": n });
                    let id = until("a webhook is acked", || async {
                        let url = &urls[turn.fetch_add(1, Ordering::Relaxed) % urls.len()];
                        let answer = Rest::try_send(api.http().post(url).json(&payload)).await.ok();
                        let acked = answer.filter(|answer| answer.status == 202);
                        if acked.is_none() {
                            sent_again.fetch_add(1, Ordering::Relaxed);
                        }
                        Some(acked?.json()["messageId"].as_str().unwrap().to_owned())
                    })
                    .await;
                    acked.lock().unwrap().insert(id, n);
                }
            });
        }
        Self { acked, sent_again, tasks }
    }

    pub fn acked(&self) -> usize {
        self.acked.lock().unwrap().len()
    }

    /// Waits for the last ack.
    pub async fn finished(&mut self) {
        while let Some(sender) = self.tasks.join_next().await {
            sender.unwrap();
        }
    }

    /// Waits until all has ended, holds what was acked against what came to the target, and says what it counted.
    pub async fn nothing_is_lost(&self, what: &str, api: &Rest, flow: &str, target: &FakeTarget, kills: usize) {
        until("every message has ended", || async {
            for status in ["received", "processing", "retrying", "held"] {
                let path = format!("/api/v1/messages?flowId={flow}&status={status}&limit=1");
                if api.get(&path).await.expect(200)["pagination"]["total"] != 0 {
                    return None;
                }
            }
            Some(())
        })
        .await;
        let acked = self.acked.lock().unwrap().clone();
        let mut numbers: HashMap<String, (u64, usize)> = HashMap::new();
        for received in target.received() {
            let n = received.json()["n"].as_u64().unwrap();
            numbers.entry(received.header("idempotency-key").to_owned()).or_insert((n, 0)).1 += 1;
        }
        let lost = acked.keys().filter(|id| !numbers.contains_key(*id)).count();
        let mut by_attempts = 0;
        for id in acked.keys() {
            let message = api.message(id).await;
            assert_eq!(message["status"], "delivered", "{message}");
            by_attempts += message["attempts"].as_u64().unwrap() as usize;
        }
        // A request that no recorded attempt stands for was made by a process that died before it could write it down.
        let requests: usize = acked.keys().filter_map(|id| numbers.get(id)).map(|(_, requests)| requests).sum();
        let duplicates = requests.saturating_sub(by_attempts);
        println!(
            "{what}: {} acked, {kills} kills, {lost} lost, {duplicates} duplicates, {} requests sent again",
            acked.len(),
            self.sent_again.load(Ordering::Relaxed)
        );
        assert_eq!(lost, 0, "acked messages never reached the target");
        assert!(duplicates <= kills * LANE, "{duplicates} duplicates of {kills} kills");
    }
}
