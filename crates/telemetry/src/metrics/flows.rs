//! Counters of messages by flow. The counters of a flow are looked up once, when its plan is
//! compiled, and kept with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// Maximum number of flows with labels of their own; others are counted together.
const MAX_FLOWS: usize = 2_000;

/// Outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The message is durable.
    Accepted,
    /// The message is a repeat of an accepted one.
    Duplicate,
    Delivered,
    Filtered,
    /// The attempt failed, and the message is retried later.
    Retried,
    DeadLettered,
}

impl Outcome {
    const ALL: [(Self, &'static str, &'static str); 6] = [
        (
            Self::Accepted,
            "messages_accepted",
            "Messages that are durable and were acknowledged.",
        ),
        (
            Self::Duplicate,
            "messages_duplicate",
            "Messages recognised as repeats.",
        ),
        (
            Self::Delivered,
            "messages_delivered",
            "Messages delivered to their target.",
        ),
        (
            Self::Filtered,
            "messages_filtered",
            "Messages that their flow's condition let go.",
        ),
        (
            Self::Retried,
            "messages_retried",
            "Attempts that failed and will be repeated.",
        ),
        (
            Self::DeadLettered,
            "messages_dead_lettered",
            "Messages given up as dead letters.",
        ),
    ];
}

/// Counters of all flows; a cheap handle.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    known: Mutex<HashMap<String, Arc<Flow>>>,
    others: Arc<Flow>,
}

/// Counters of one flow.
#[derive(Debug, Default)]
pub struct Flow {
    id: String,
    name: String,
    counts: Arc<[AtomicU64; Outcome::ALL.len()]>,
    /// Counters of its polls, if the flow polls.
    polls: Arc<OnceLock<Polls>>,
}

/// Polling cycles of a flow.
#[derive(Debug, Default)]
struct Polls {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl Flow {
    /// Exposes the poll counters before the first cycle.
    pub fn expose_poll_counters(&self) {
        self.polls.get_or_init(Polls::default);
    }

    /// Counts a successful polling cycle.
    pub fn poll_succeeded(&self) {
        self.polls
            .get_or_init(Polls::default)
            .succeeded
            .fetch_add(1, Relaxed);
    }

    /// Counts a failed polling cycle.
    pub fn poll_failed(&self) {
        self.polls
            .get_or_init(Polls::default)
            .failed
            .fetch_add(1, Relaxed);
    }

    pub fn count(&self, outcome: Outcome) {
        self.counts[outcome as usize].fetch_add(1, Relaxed);
    }

    fn labels(&self) -> [(&'static str, &str); 2] {
        [("flow_id", &self.id), ("flow", &self.name)]
    }
}

impl Flows {
    /// Returns the counters of a flow, shared by all its versions and names.
    pub fn flow(&self, id: &str, name: &str) -> Arc<Flow> {
        let mut known = self.inner.known.lock();
        let former = known.get(id);
        if let Some(flow) = former.filter(|flow| flow.name == name) {
            return Arc::clone(flow);
        }
        let (counts, polls) = former
            .map(|flow| (Arc::clone(&flow.counts), Arc::clone(&flow.polls)))
            .unzip();
        if counts.is_none() && known.len() >= MAX_FLOWS {
            // Counters of flows without a plan make room.
            known.retain(|_, flow| Arc::strong_count(flow) > 1);
            if known.len() >= MAX_FLOWS {
                return Arc::clone(&self.inner.others);
            }
        }
        let counts = counts.unwrap_or_default();
        let polls = polls.unwrap_or_default();
        let flow = Flow {
            id: id.to_owned(),
            name: name.to_owned(),
            counts,
            polls,
        };
        let flow = Arc::new(flow);
        known.insert(id.to_owned(), Arc::clone(&flow));
        flow
    }

    /// Returns the counters of a flow whose name is unknown.
    pub fn of(&self, id: &str) -> Arc<Flow> {
        let known = self.inner.known.lock().get(id).cloned();
        known.unwrap_or_else(|| self.flow(id, ""))
    }

    /// Returns the name of a flow, if it is known.
    pub fn name(&self, id: &str) -> Option<String> {
        self.inner
            .known
            .lock()
            .get(id)
            .map(|flow| flow.name.clone())
    }
}

impl Collector for Flows {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut flows: Vec<_> = self.inner.known.lock().values().cloned().collect();
        flows.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let others = &self.inner.others;
        if others.polls.get().is_some() || others.counts.iter().any(|count| count.load(Relaxed) > 0)
        {
            flows.push(Arc::clone(&self.inner.others));
        }
        for (outcome, name, help) in Outcome::ALL {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for flow in &flows {
                let count = flow.counts[outcome as usize].load(Relaxed);
                ConstCounter::new(count).encode(family.encode_family(&flow.labels())?)?;
            }
        }
        let help = "Cycles of polls by how they ended.";
        let mut family = encoder.encode_descriptor("polls", help, None, MetricType::Counter)?;
        for flow in &flows {
            let Some(polls) = flow.polls.get() else {
                continue;
            };
            for (result, count) in [("succeeded", &polls.succeeded), ("failed", &polls.failed)] {
                let [id, name] = flow.labels();
                let labels = [id, name, ("result", result)];
                ConstCounter::new(count.load(Relaxed)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(flow: &Flow) -> u64 {
        flow.counts[Outcome::Accepted as usize].load(Relaxed)
    }

    #[test]
    fn a_flow_that_is_renamed_keeps_its_counts() {
        let flows = Flows::default();
        let old = flows.flow("flw_1", "old");
        old.count(Outcome::Accepted);
        let new = flows.flow("flw_1", "new");
        old.count(Outcome::Accepted);
        assert_eq!(accepted(&new), 2);
        assert_eq!(flows.name("flw_1").as_deref(), Some("new"));
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_together_and_former_ones_make_room() {
        let flows = Flows::default();
        let mut held: Vec<_> = (0..MAX_FLOWS)
            .map(|n| flows.flow(&format!("flw_{n}"), "flow"))
            .collect();
        let others = flows.flow("flw_beyond", "flow");
        assert!(Arc::ptr_eq(&others, &flows.flow("flw_further", "flow")));
        held.pop();
        assert_eq!(flows.flow("flw_beyond", "flow").id, "flw_beyond");
    }

    #[test]
    fn every_outcome_has_a_place_of_its_own() {
        for (place, (outcome, ..)) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place);
        }
    }
}
