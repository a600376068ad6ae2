//! Monitoring of a node: readiness, usage, and the plans that it runs.

use std::sync::Arc;
use std::time::Duration;

use kanat_telemetry::metrics;

use crate::context::NodeContext;

/// A log that does not answer a readiness probe within this time is not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// A cheap handle for probes and metrics.
#[derive(Clone)]
pub struct Monitor {
    shared: Arc<NodeContext>,
}

impl Monitor {
    pub(crate) fn new(shared: Arc<NodeContext>) -> Self {
        Self { shared }
    }

    /// Returns whether messages are accepted and run, and the log takes them.
    pub async fn ready(&self) -> bool {
        let pipeline = &self.shared.pipeline;
        let log =
            async { pipeline.ping().await.is_ok() && pipeline.takes_messages().await.is_ok() };
        self.shared.is_ready() && tokio::time::timeout(PROBE_TIMEOUT, log).await == Ok(true)
    }

    /// Returns the current readings of the node.
    pub fn readings(&self) -> metrics::Node {
        let NodeContext {
            plans, pipeline, ..
        } = &*self.shared;
        let environments = plans.load();
        let usage = pipeline.usage();
        let backlog = pipeline.backlog();
        let environments = environments
            .environments()
            .map(|e| (e.id.to_string(), e.generation));
        metrics::Node {
            ready: self.shared.is_ready(),
            draining: pipeline.is_draining(),
            in_flight: pipeline.in_flight(),
            in_memory: usage.messages,
            memory_bytes: usage.bytes,
            lanes: usage.lanes,
            backlog_bytes: backlog.bytes(),
            backlog_limit_bytes: backlog.limits().bytes,
            breakers_open: pipeline.breakers_open(),
            waiting_for_plans: pipeline.waiting_for_plans(),
            environments: environments.collect(),
        }
    }
}
