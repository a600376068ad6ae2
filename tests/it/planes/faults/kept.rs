//! Counts of the fault tests. An acked message that the target never took is lost. A message that
//! the target took more often than its record has attempts is a duplicate: a process sent it and
//! died before it could store that. Duplicates are allowed only for messages in flight at a kill,
//! and once for each.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use kanat_tests::message_list::{MAX_PAGE_SIZE, all_end, messages};
use kanat_tests::rest::text;
use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, Rest};
use serde_json::Value;

use super::senders::Senders;

pub const FLOW: &str = r"flow: survivors
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

/// Requests that a node sends one target at once.
pub const LANE: usize = 64;

/// Takes every message, each third number only at its second attempt.
pub async fn target() -> FakeTarget {
    let failed = Mutex::new(HashSet::new());
    FakeTarget::scripted(move |received, _| {
        let n = received.json()["n"].as_u64().unwrap();
        if n.is_multiple_of(3) && failed.lock().unwrap().insert(n) {
            status(503)
        } else {
            ok()
        }
    })
    .await
}

/// Takes every message, but hangs at the `at`-th request, counted from 1.
pub async fn target_that_hangs(at: &'static [usize]) -> FakeTarget {
    FakeTarget::scripted(move |_, earlier| {
        if at.contains(&(earlier + 1)) {
            Reply::Hang
        } else {
            ok()
        }
    })
    .await
}

/// The end of a process, described after it.
pub struct Kill {
    pub at: Timestamp,
    /// Ids of the messages that were being worked on, where another process could look.
    in_flight: Option<HashSet<String>>,
}

impl Kill {
    /// Nobody can look: what had come in and had not ended may have been in flight.
    pub fn unseen() -> Self {
        Self {
            at: Timestamp::now(),
            in_flight: None,
        }
    }

    /// The log shows what was in flight, as long as nobody has taken it over, and in one page,
    /// which is one state of it: from page to page messages move while others are worked on.
    pub async fn seen(api: &Rest, flow: &str, lease: Duration) -> Self {
        let at = Timestamp::now();
        let killed = Instant::now();
        let path =
            format!("/api/v1/messages?flowId={flow}&status=processing&limit={MAX_PAGE_SIZE}");
        let page = api.get(&path).await.expect(200);
        let ids: HashSet<_> = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| text(&message["id"]))
            .collect();
        let is_whole = page["pagination"]["total"] == ids.len();
        // Leases are renewed well before they end.
        let in_flight = (is_whole && killed.elapsed() < lease / 2).then_some(ids);
        Self { at, in_flight }
    }

    fn caught(&self, id: &str, message: &Value) -> bool {
        match &self.in_flight {
            Some(in_flight) => in_flight.contains(id),
            None => open_at(message, self.at),
        }
    }
}

/// The message had come in by then and had not ended, by the log's own times.
pub fn open_at(message: &Value, at: Timestamp) -> bool {
    time(&message["receivedAt"]) <= at && at <= time(&message["completedAt"])
}

pub fn time(value: &Value) -> Timestamp {
    value
        .as_str()
        .and_then(Timestamp::parse)
        .unwrap_or_else(|| panic!("{value} is no time"))
}

/// Waits until all has ended, holds what was acked against what came to the target, and says what
/// it counted. Gives the messages, by id.
pub async fn nothing_is_lost(
    what: &str,
    senders: &Senders,
    api: &Rest,
    flow: &str,
    target: &FakeTarget,
    kills: &[Kill],
) -> HashMap<String, Value> {
    let query = format!("flowId={flow}");
    all_end(api, &query).await;
    let messages = messages(api, &query).await;
    let mut requests: HashMap<String, u64> = HashMap::new();
    for received in target.received() {
        *requests
            .entry(received.header("idempotency-key").to_owned())
            .or_default() += 1;
    }
    let acked = senders.acked_ids();
    let lost = acked
        .iter()
        .filter(|id| !requests.contains_key(*id))
        .count();
    let mut duplicates = 0;
    let mut in_flight = 0;
    for (id, message) in &messages {
        assert_eq!(message["status"], "delivered", "{message}");
        let requests = requests.get(id).copied().unwrap_or(0);
        let more = requests.saturating_sub(message["attempts"].as_u64().unwrap());
        let caught = kills.iter().filter(|kill| kill.caught(id, message)).count() as u64;
        assert!(
            more <= caught,
            "{requests} requests, in flight at {caught} kills: {message}"
        );
        (duplicates, in_flight) = (duplicates + more, in_flight + caught);
    }
    println!(
        "{what}: {} acked, {} kills, {lost} lost, {in_flight} in flight, {duplicates} duplicates, \
         {} requests sent again",
        acked.len(),
        kills.len(),
        senders.sent_again(),
    );
    assert_eq!(lost, 0, "acked messages never reached the target");
    assert!(
        acked.iter().all(|id| messages.contains_key(id)),
        "acked messages are not in the log"
    );
    messages
}
