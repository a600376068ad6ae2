//! State of a control plane for monitoring: its readiness, and the progress of its nodes.

use std::sync::Arc;

use kanat_telemetry::metrics::{self, Environment, Nodes};

use crate::app::App;
use crate::push::Node;
use crate::push::nodes::Status;

/// A cheap handle for probes and metrics.
#[derive(Clone)]
pub struct Monitor {
    app: Arc<App>,
}

impl Monitor {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Returns whether the stores answer.
    pub async fn ready(&self) -> bool {
        self.app.store.ping().await.is_ok() && self.app.log.ping().await.is_ok()
    }

    /// Nodes and plans as they are now.
    pub fn readings(&self) -> metrics::ControlPlane {
        let mut nodes = self.app.hub.nodes();
        nodes.retain(|node| node.status != Status::Disconnected);
        let environments = self
            .app
            .hub
            .current_versions()
            .into_iter()
            .map(|(id, version)| {
                let running = nodes.iter().filter_map(|node| node.environments.get(&id));
                let lag = running
                    .map(|running| version.lag_of(running.applied.as_ref()))
                    .max()
                    .unwrap_or(0);
                Environment {
                    id: id.into_string(),
                    generation: version.generation,
                    lag,
                }
            });
        let running = nodes.iter().flat_map(|node| node.environments.values());
        metrics::ControlPlane {
            environments: environments.collect(),
            refused: running.map(|running| running.rejected.len()).sum(),
            nodes: Nodes {
                connected: count(&nodes, Status::Connected),
                draining: count(&nodes, Status::Draining),
            },
        }
    }
}

fn count(nodes: &[Node], status: Status) -> usize {
    nodes.iter().filter(|node| node.status == status).count()
}
