//! The load under which faults are caused: senders of several flows, each with a key of its own,
//! and a target that fails at times. Both keep what they saw.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::message_list::{all_end, messages};
use crate::target::{ReceivedRequest, Reply, ok, status};
use crate::{FakeTarget, Rest, until};

/// Flows, and what each has beyond the others.
const FLOWS: [(&str, &str); 4] = [
    ("plain", ""),
    ("ordered", "ordering_key: source.key\n"),
    ("once", "idempotency_key: source.id\n"),
    ("failing", ""),
];

/// The flow whose repeats are one message.
pub const ONCE: &str = "once";
/// The flow whose messages of one key are delivered one after another.
pub const ORDERED: &str = "ordered";
const FAILING: &str = "failing";

const SENDERS: usize = 8;
/// Between an ack and the next request of a sender.
const PACE: Duration = Duration::from_millis(10);
/// Delay before a sender repeats a refused request.
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// A request without an answer for so long is sent again, to the next address.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Target and flows, which outlive the processes of a service.
pub struct Workload {
    pub target: FakeTarget,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    flows: Vec<Flow>,
}

#[derive(Clone)]
struct Flow {
    name: &'static str,
    id: String,
    /// Path of its webhook.
    webhook: String,
}

/// A request that the target answered with 200.
#[derive(Debug, Clone)]
pub struct Arrival {
    pub id: String,
    pub source: Source,
}

/// Flow and number of a message, as its payload has them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    pub flow: String,
    pub key: String,
    pub number: u64,
}

/// A request that was answered with 202.
#[derive(Debug, Clone)]
pub struct Ack {
    pub id: String,
    pub source: Source,
    /// Time of the run after the answer.
    pub at: u64,
}

/// Kinds of messages that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Messages of every flow.
    Every,
    /// Messages that the log answers by its journal alone.
    Plain,
}

/// Senders under way.
pub struct Senders {
    shared: Arc<WorkloadState>,
    tasks: JoinSet<()>,
}

struct WorkloadState {
    acks: Mutex<Vec<Ack>>,
    /// When the last request began that was acked, by address.
    last: Mutex<HashMap<String, Instant>>,
    /// Answers that no sender expects, in words.
    wrong: Mutex<Vec<String>>,
    is_stopped: AtomicBool,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl Workload {
    /// Starts the target.
    pub async fn start() -> Self {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let failed = Mutex::new(HashSet::new());
        let seen = Arc::clone(&arrivals);
        let target = FakeTarget::scripted(move |received, _| {
            let arrival = Arrival::of(received);
            let source = &arrival.source;
            let fails = source.flow == FAILING && source.number.is_multiple_of(3);
            if fails && lock(&failed).insert(arrival.id.clone()) {
                return if source.number.is_multiple_of(2) {
                    status(503)
                } else {
                    Reply::Reset
                };
            }
            lock(&seen).push(arrival);
            ok()
        })
        .await;
        Self {
            target,
            arrivals,
            flows: Vec::new(),
        }
    }

    /// Makes the flows of a fresh service at this address.
    pub async fn deploy(&mut self, api: &Rest, base: &str) {
        api.http_instance("erp", &self.target.url()).await;
        for (name, more) in FLOWS {
            let (id, webhook) = api.deployed(&definition(name, more)).await;
            // A service of one process gives the whole address.
            let webhook = webhook.strip_prefix(base).unwrap_or(&webhook).to_owned();
            self.flows.push(Flow { name, id, webhook });
        }
    }

    /// Waits until every message has ended; returns them by their ids.
    pub async fn ended(&self, api: &Rest) -> HashMap<String, Value> {
        let mut all = HashMap::new();
        for flow in &self.flows {
            let query = format!("flowId={}", flow.id);
            all_end(api, &query).await;
            all.extend(messages(api, &query).await);
        }
        all
    }

    /// Begins to send to these addresses in turn. `clock` gives the time for [`Ack::at`].
    pub fn send(
        &self,
        api: &Rest,
        addresses: &[String],
        mix: Mix,
        clock: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Senders {
        let shared = Arc::new(WorkloadState {
            acks: Mutex::default(),
            last: Mutex::default(),
            wrong: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            clock: Box::new(clock),
        });
        let mut tasks = JoinSet::new();
        for sender in 0..SENDERS {
            let Flow { name, webhook, .. } = match mix {
                Mix::Every => &self.flows[sender % self.flows.len()],
                Mix::Plain => &self.flows[0],
            };
            let urls: Vec<_> = addresses
                .iter()
                .map(|door| (door.clone(), format!("{door}{webhook}")))
                .collect();
            let sender = Sender {
                shared: Arc::clone(&shared),
                api: api.without_key(),
                urls,
                flow: name,
                number: sender,
            };
            tasks.spawn(sender.run());
        }
        Senders { shared, tasks }
    }

    /// Returns what has arrived since there were `from` arrivals.
    pub fn arrivals(&self, from: usize) -> Vec<Arrival> {
        lock(&self.arrivals)[from..].to_vec()
    }

    pub fn arrived(&self) -> usize {
        lock(&self.arrivals).len()
    }

    /// Forgets all requests, so that a long run needs no memory for them.
    pub fn forget(&self) {
        lock(&self.arrivals).clear();
        self.target.forget();
    }
}

impl Arrival {
    fn of(received: &ReceivedRequest) -> Self {
        let body = received.json();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let flow = received.path.trim_start_matches('/').to_owned();
        let source = Source {
            flow,
            key: text("key"),
            number: body["number"].as_u64().unwrap_or_default(),
        };
        Self {
            id: received.header("idempotency-key").to_owned(),
            source,
        }
    }
}

impl Senders {
    /// Waits until a request that began after `since` is acked at each of these addresses.
    ///
    /// # Errors
    ///
    /// A sender got an answer that is neither 202 nor a 503 with `Retry-After`.
    pub async fn acked_after(&self, since: Instant, addresses: &[String]) -> Result<()> {
        until("requests are acked again", || async {
            let last = lock(&self.shared.last);
            let is_acked = addresses
                .iter()
                .all(|door| last.get(door).is_some_and(|last| *last > since));
            let is_wrong = !lock(&self.shared.wrong).is_empty();
            (is_acked || is_wrong).then_some(())
        })
        .await;
        self.outcome().map(drop)
    }

    /// Ends in the middle of requests; returns what was acked.
    ///
    /// # Errors
    ///
    /// A sender got an answer that is neither 202 nor a 503 with `Retry-After`.
    pub fn abort(mut self) -> Result<Vec<Ack>> {
        self.tasks.abort_all();
        self.outcome()
    }

    /// Waits for the ack of each request under way; returns what was acked.
    ///
    /// # Errors
    ///
    /// A sender got an answer that is neither 202 nor a 503 with `Retry-After`.
    pub async fn finish(mut self) -> Result<Vec<Ack>> {
        self.shared.is_stopped.store(true, Ordering::Release);
        while let Some(sender) = self.tasks.join_next().await {
            sender?;
        }
        self.outcome()
    }

    fn outcome(&self) -> Result<Vec<Ack>> {
        let wrong = lock(&self.shared.wrong);
        anyhow::ensure!(
            wrong.is_empty(),
            "{} wrong answers, first {:?}",
            wrong.len(),
            wrong.first()
        );
        Ok(lock(&self.shared.acks).clone())
    }
}

struct Sender {
    shared: Arc<WorkloadState>,
    api: Rest,
    /// Address and webhook.
    urls: Vec<(String, String)>,
    flow: &'static str,
    number: usize,
}

impl Sender {
    async fn run(self) {
        let mut turn = self.number;
        for number in 1.. {
            let key = format!("sender-{}", self.number);
            let padding = "x".repeat(padding_bytes(number));
            let body = json!({
                "key": key,
                "number": number,
                "id": format!("{key}-{number}"),
                "padding": padding,
            });
            let id = loop {
                if self.shared.is_stopped.load(Ordering::Acquire) {
                    return;
                }
                let (door, url) = &self.urls[turn % self.urls.len()];
                turn += 1;
                let begun = Instant::now();
                if let Some(id) = self.post(url, &body).await {
                    lock(&self.shared.last).insert(door.clone(), begun);
                    break id;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            };
            let at = (self.shared.clock)();
            let source = Source {
                flow: self.flow.to_owned(),
                key,
                number,
            };
            lock(&self.shared.acks).push(Ack { id, source, at });
            tokio::time::sleep(PACE).await;
        }
    }

    async fn post(&self, url: &str, body: &Value) -> Option<String> {
        let request = self.api.http().post(url).json(body).timeout(ANSWER_TIMEOUT);
        // A connection that breaks is what happens to a sender at a crash.
        let answer = Rest::try_send(request).await.ok()?;
        let retry_after = !answer.header("retry-after").is_empty();
        match answer.status {
            202 => Some(crate::rest::text(&answer.json()["messageId"])),
            503 if retry_after => None,
            status => {
                lock(&self.shared.wrong)
                    .push(format!("{status} of {}: {}", self.flow, answer.text));
                None
            }
        }
    }
}

/// Most messages are small; one in a hundred fills some pages.
fn padding_bytes(number: u64) -> usize {
    match number % 100 {
        0 => 40_000,
        rest => usize::try_from(rest * 20).expect("it is small"),
    }
}

fn definition(name: &str, more: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /{name}
  method: POST
mapping:
  key: source.key
  number: source.number
{more}on_error:
  retry: 60x fixed(100ms)
"
    )
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
