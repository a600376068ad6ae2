//! SIGKILL at any moment loses no message that was acked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const MESSAGES: usize = 2_000;
const KILLS: usize = 5;
const SENDERS: usize = 16;

const FLOW: &str = r"flow: survivors
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in/{{ source.n }}
  method: POST
mapping:
  n: source.n
  kind: source.kind | uppercase
on_error:
  retry: 10x fixed(100ms)
";

/// Posts until `MESSAGES` numbers are acked; a number whose answer was lost is sent again, as a
/// sender would.
async fn send(
    api: Rest,
    url: String,
    next: Arc<AtomicUsize>,
    acked: Arc<Mutex<HashMap<String, usize>>>,
) {
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= MESSAGES {
            return;
        }
        let payload = json!({ "n": n, "kind": "order" });
        let id = until("a webhook is acked", || async {
            let answer = Rest::try_send(api.http().post(&url).json(&payload))
                .await
                .ok()?;
            (answer.status == 202).then(|| answer.json()["messageId"].as_str().unwrap().to_owned())
        })
        .await;
        acked.lock().await.insert(id, n);
    }
}

#[tokio::test]
async fn two_thousand_messages_survive_five_kills() {
    let mut app = TestApp::start().await;
    // Every seventh number fails at its first attempt, so that kills also meet messages that wait
    // for a retry.
    let failed = std::sync::Mutex::new(HashSet::new());
    let target = FakeTarget::scripted(move |received, _| {
        let n = received.json()["n"].as_u64().unwrap();
        if n.is_multiple_of(7) && failed.lock().unwrap().insert(n) {
            status(503)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;

    let next = Arc::new(AtomicUsize::new(0));
    let acked = Arc::new(Mutex::new(HashMap::new()));
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        senders.spawn(send(
            app.api.clone(),
            url.clone(),
            Arc::clone(&next),
            Arc::clone(&acked),
        ));
    }
    for kill in 1..=KILLS {
        let enough = MESSAGES * kill / (KILLS + 1);
        until(&format!("{enough} messages are acked"), || async {
            (acked.lock().await.len() >= enough).then_some(())
        })
        .await;
        app.kill().await;
        app.restart().await;
    }
    while let Some(sender) = senders.join_next().await {
        sender.unwrap();
    }

    let acked = acked.lock().await.clone();
    assert_eq!(acked.len(), MESSAGES);
    let open = ["received", "processing", "retrying", "held"];
    until("every message has ended", || async {
        for status in open {
            let path = format!("/api/v1/messages?flowId={flow}&status={status}&limit=1");
            if app.api.get(&path).await.expect(200)["pagination"]["total"] != 0 {
                return None;
            }
        }
        Some(())
    })
    .await;

    let mut deliveries: HashMap<String, usize> = HashMap::new();
    for received in target.received() {
        *deliveries
            .entry(received.header("idempotency-key").to_owned())
            .or_default() += 1;
    }
    let lost: Vec<_> = acked
        .keys()
        .filter(|id| !deliveries.contains_key(*id))
        .collect();
    assert!(
        lost.is_empty(),
        "{} acked messages never reached the target: {lost:?}",
        lost.len()
    );
    let expected = |n: usize| if n.is_multiple_of(7) { 2 } else { 1 };
    let duplicates: usize = acked
        .iter()
        .map(|(id, n)| deliveries[id].saturating_sub(expected(*n)))
        .sum();
    println!("{MESSAGES} acked, {KILLS} kills, 0 lost, {duplicates} duplicates");

    for id in acked.keys() {
        assert_eq!(app.api.message(id).await["status"], "delivered", "{id}");
    }
}
