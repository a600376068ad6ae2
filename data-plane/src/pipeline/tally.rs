//! Counts the outcome of an attempt once it is durable: an outcome that is written twice or comes
//! too late is not counted again.

use std::sync::Arc;

use kanat_message_log::Outcome;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::{ErrorKind, Failure, Status};
use kanat_telemetry::metrics;

use crate::backlog::Exit;

/// Counters of one message.
pub(super) struct Tally {
    flow: Arc<metrics::Flow>,
    received_at: Timestamp,
    exit: Option<Exit>,
}

impl Tally {
    pub fn new(flow: &Arc<metrics::Flow>, received_at: Timestamp) -> Self {
        Self {
            flow: Arc::clone(flow),
            received_at,
            exit: None,
        }
    }

    /// Returns the counters of a flow whose plan is not loaded.
    pub fn of(flow_id: &FlowId, received_at: Timestamp) -> Self {
        Self {
            flow: metrics().flows.of(flow_id.as_str()),
            received_at,
            exit: None,
        }
    }

    /// Removes the message from the backlog when it ends.
    pub fn leaving(self, exit: Exit) -> Self {
        Self {
            exit: Some(exit),
            ..self
        }
    }

    /// Counts an attempt that ended at `at`.
    pub fn count(&self, outcome: Outcome, failure: Option<&Failure>, at: Timestamp) {
        if outcome.status().is_some_and(Status::is_final) {
            self.exit.iter().for_each(Exit::leave);
        }
        let failed = || {
            failure
                .map_or(ErrorKind::Configuration, |failure| failure.kind)
                .as_str()
        };
        let (outcome, result) = match outcome {
            Outcome::Delivered => (metrics::Outcome::Delivered, "delivered"),
            Outcome::Filtered => (metrics::Outcome::Filtered, "filtered"),
            Outcome::Retry { .. } => (metrics::Outcome::Retried, failed()),
            Outcome::DeadLetter => (metrics::Outcome::DeadLettered, failed()),
            // Given back undone, or dropped: no attempt.
            Outcome::Release { .. }
            | Outcome::Yield
            | Outcome::Hold { .. }
            | Outcome::Discarded => return,
        };
        if outcome == metrics::Outcome::Delivered {
            metrics().delivery.observe(at.since(self.received_at));
        }
        self.flow.count(outcome);
        metrics().attempts.count(result);
    }
}
