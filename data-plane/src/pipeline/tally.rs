//! Counts what an attempt came to, once that is durable: what is written twice or comes too late is counted once or never.

use std::sync::Arc;

use kanat_message_log::{Outcome, Settlement};
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::ErrorKind;
use kanat_telemetry::metrics;

/// Where one message is counted.
pub(super) struct Tally {
    flow: Arc<metrics::Flow>,
    received_at: Timestamp,
}

impl Tally {
    pub fn new(flow: &Arc<metrics::Flow>, received_at: Timestamp) -> Self {
        Self { flow: Arc::clone(flow), received_at }
    }

    /// For a flow whose plan is not at hand.
    pub fn of(flow_id: &FlowId, received_at: Timestamp) -> Self {
        Self { flow: metrics().flows.of(flow_id.as_str()), received_at }
    }

    pub fn count(&self, settlement: &Settlement) {
        let (outcome, result) = match settlement.outcome {
            Outcome::Delivered => (metrics::Outcome::Delivered, "delivered"),
            Outcome::Filtered => (metrics::Outcome::Filtered, "filtered"),
            Outcome::Retry { .. } => (metrics::Outcome::Retried, failure(settlement)),
            Outcome::DeadLetter => (metrics::Outcome::DeadLettered, failure(settlement)),
            // Given back undone, or dropped: no attempt.
            Outcome::Release { .. } | Outcome::Discarded => return,
        };
        if outcome == metrics::Outcome::Delivered {
            metrics().delivery.observe(settlement.at.since(self.received_at));
        }
        self.flow.count(outcome);
        metrics().attempted(result);
    }
}

fn failure(settlement: &Settlement) -> &'static str {
    settlement.failure.as_ref().map_or(ErrorKind::Configuration, |failure| failure.kind).as_str()
}
