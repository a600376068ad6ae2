//! Senders that post to webhooks during a fault: each number again until it is acked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use kanat_tests::{Rest, until};
use tokio::task::JoinSet;

pub const SENDERS: usize = 16;

/// How much they send.
#[derive(Clone, Copy)]
pub struct Load {
    pub senders: usize,
    /// Bytes of each body, about.
    pub body: usize,
    /// How long one that was refused waits.
    pub patience: Duration,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            senders: SENDERS,
            body: 0,
            patience: Duration::ZERO,
        }
    }
}

/// Senders under way.
pub struct Senders {
    counts: Arc<Counts>,
    tasks: JoinSet<()>,
}

#[derive(Default)]
struct Counts {
    /// Ids of messages, with their numbers.
    acked: Mutex<HashMap<String, usize>>,
    /// Requests that got no 202.
    sent_again: AtomicUsize,
    /// Requests that got a 503, which said when to come back.
    refused: AtomicUsize,
    stopped: AtomicBool,
}

impl Senders {
    /// Posts the numbers from 0 to `messages`, each until it is acked, to one of the addresses
    /// after another.
    pub fn start(api: &Rest, urls: &[String], messages: usize) -> Self {
        Self::start_with(api, urls, messages, Load::default())
    }

    /// Posts numbers until it is stopped.
    pub fn start_endless(api: &Rest, urls: &[String]) -> Self {
        Self::start(api, urls, usize::MAX)
    }

    pub fn start_with(api: &Rest, urls: &[String], messages: usize, load: Load) -> Self {
        let counts = Arc::new(Counts::default());
        let next = Arc::new(AtomicUsize::new(0));
        let padding: Arc<str> = "x".repeat(load.body).into();
        let mut tasks = JoinSet::new();
        for sender in 0..load.senders {
            let api = api.clone();
            let urls = urls.to_vec();
            let padding = Arc::clone(&padding);
            let counts = Arc::clone(&counts);
            let next = Arc::clone(&next);
            tasks.spawn(async move {
                let turn = AtomicUsize::new(sender);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= messages || counts.stopped.load(Ordering::Acquire) {
                        return;
                    }
                    let body = Bytes::from(format!("{{\"n\":{n},\"padding\":\"{padding}\"}}"));
                    let id = until("a webhook is acked", || async {
                        let url = &urls[turn.fetch_add(1, Ordering::Relaxed) % urls.len()];
                        counts.post(&api, url, &body, load.patience).await
                    })
                    .await;
                    counts.acked.lock().unwrap().insert(id, n);
                }
            });
        }
        Self { counts, tasks }
    }

    /// The ids of what was acked so far.
    pub fn acked_ids(&self) -> Vec<String> {
        self.counts.acked.lock().unwrap().keys().cloned().collect()
    }

    pub fn acked(&self) -> usize {
        self.counts.acked.lock().unwrap().len()
    }

    pub fn sent_again(&self) -> usize {
        self.counts.sent_again.load(Ordering::Relaxed)
    }

    pub fn refused(&self) -> usize {
        self.counts.refused.load(Ordering::Relaxed)
    }

    /// Waits until so many more are acked.
    pub async fn ack(&self, more: usize) {
        let goal = self.acked() + more;
        until(&format!("{more} more messages are acked"), || async {
            (self.acked() >= goal).then_some(())
        })
        .await;
    }

    /// Begins nothing more.
    pub fn stop(&self) {
        self.counts.stopped.store(true, Ordering::Release);
    }

    /// Waits for the last ack.
    pub async fn finished(&mut self) {
        while let Some(sender) = self.tasks.join_next().await {
            sender.unwrap();
        }
    }
}

impl Counts {
    /// The id of the message, if it was acked.
    async fn post(
        &self,
        api: &Rest,
        url: &str,
        body: &Bytes,
        patience: Duration,
    ) -> Option<String> {
        let request = api
            .http()
            .post(url)
            .header("content-type", "application/json");
        let answer = Rest::try_send(request.body(body.clone())).await.ok();
        if let Some(acked) = answer.as_ref().filter(|answer| answer.status == 202) {
            return Some(acked.json()["messageId"].as_str().unwrap().to_owned());
        }
        self.sent_again.fetch_add(1, Ordering::Relaxed);
        if let Some(answer) = answer {
            assert_eq!(answer.status, 503, "{}", answer.text);
            assert!(
                !(answer.header("retry-after").is_empty()),
                "{}",
                answer.text
            );
            self.refused.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(patience).await;
        }
        None
    }
}
