//! A rolling restart of all nodes behind a proxy: no request is refused, none fails, nothing is
//! lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::webhook::passthrough;

const SENDERS: usize = 8;

/// Seconds that the proxy has to hear that a node goes; it asks twenty times a second, on a quiet
/// machine.
const GRACE: &str = "3";

/// A proxy as far as it matters here: asks each node whether it is ready, and sends requests to
/// those that said so last.
struct Front {
    nodes: Vec<(String, AtomicBool)>,
    turn: AtomicUsize,
    api: Rest,
}

impl Front {
    async fn probe(self: Arc<Self>) {
        loop {
            for (base, is_ready) in &self.nodes {
                let answer = Rest::try_send(self.api.http().get(format!("{base}/ready"))).await;
                is_ready.store(
                    answer.is_ok_and(|answer| answer.status == 200),
                    Ordering::Release,
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn next(&self) -> &str {
        let ready = || {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            let mut turns =
                (turn..turn + self.nodes.len()).map(|turn| &self.nodes[turn % self.nodes.len()]);
            turns.find_map(|(base, is_ready)| {
                is_ready.load(Ordering::Acquire).then_some(base.as_str())
            })
        };
        until("a node is ready", || async { ready() }).await
    }
}

#[tokio::test]
async fn a_rolling_restart_refuses_no_request() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        nodes.push(
            split
                .node_with(name, &[&control], &[("KANAT_DRAIN_GRACE", GRACE)])
                .await,
        );
    }
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (flow, webhook) = control.api.deployed(&passthrough("orders")).await;

    let front = Arc::new(Front {
        nodes: nodes
            .iter()
            .map(|node| (node.base.clone(), AtomicBool::new(true)))
            .collect(),
        turn: AtomicUsize::new(0),
        api: control.api.clone(),
    });
    let mut probe = JoinSet::new();
    probe.spawn(Arc::clone(&front).probe());
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let done = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let front = Arc::clone(&front);
        let webhook = webhook.clone();
        let accepted = Arc::clone(&accepted);
        let done = Arc::clone(&done);
        senders.spawn(async move {
            for n in 0.. {
                if done.load(Ordering::Acquire) {
                    return;
                }
                let url = format!("{}{webhook}", front.next().await);
                // One try, and no second: what a proxy could do is not what keeps this at zero.
                let answer = Rest::send(
                    front
                        .api
                        .http()
                        .post(url)
                        .json(&json!({ "sender": sender, "n": n })),
                )
                .await;
                assert_eq!(answer.status, 202, "{}", answer.text);
                accepted
                    .lock()
                    .await
                    .push(answer.json()["messageId"].as_str().unwrap().to_owned());
            }
        });
    }
    for (n, node) in nodes.iter_mut().enumerate() {
        let before = accepted.lock().await.len();
        assert_eq!(node.terminate().await, Some(0), "{}", node.log());
        node.restart().await;
        node.becomes_ready().await;
        until("the proxy sends to it again", || async {
            front.nodes[n].1.load(Ordering::Acquire).then_some(())
        })
        .await;
        assert!(
            accepted.lock().await.len() > before,
            "requests are served meanwhile"
        );
    }
    done.store(true, Ordering::Release);
    while let Some(sender) = senders.join_next().await {
        sender.unwrap();
    }

    let accepted = accepted.lock().await.clone();
    until("every message is delivered", || async {
        let path = format!("/api/v1/messages?flowId={flow}&status=delivered&limit=1");
        let total = control.api.get(&path).await.expect(200)["pagination"]["total"].as_u64();
        (total == Some(accepted.len() as u64)).then_some(())
    })
    .await;
    println!(
        "{} requests through a rolling restart of {} nodes, 0 refused",
        accepted.len(),
        nodes.len()
    );
}
