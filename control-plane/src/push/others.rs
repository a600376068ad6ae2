//! Nodes that are connected to other control planes of the same database, as those wrote them down.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId};
use kanat_plan_stream::{HEARTBEAT, SILENCE};

use super::nodes::{Node, Status, Version};
use super::source::{Error, Source};

/// A node of which nothing was written down for so long has gone, and its control plane with it. They write at every
/// heartbeat.
const GONE: Duration = SILENCE.saturating_add(HEARTBEAT);

/// The nodes of the others.
#[derive(Debug)]
pub struct Others {
    /// This control plane, as the others know it.
    own: BootId,
    nodes: Mutex<Vec<Node>>,
}

impl Default for Others {
    fn default() -> Self {
        Self { own: BootId::generate(), nodes: Mutex::default() }
    }
}

impl Others {
    /// The name of this boot of the control plane.
    pub fn own(&self) -> &BootId {
        &self.own
    }

    /// Reads anew what the others wrote down.
    pub async fn refresh(&self, source: &Source) -> Result<(), Error> {
        if source.is_shared() {
            let nodes = source.nodes_elsewhere(&self.own, Timestamp::now().before(GONE)).await?;
            *self.lock() = nodes.into_iter().map(Node::from_saved).collect();
        }
        Ok(())
    }

    /// Those who are connected.
    pub fn connected(&self) -> Vec<Node> {
        let nodes = self.lock();
        nodes.iter().filter(|node| node.status != Status::Disconnected).cloned().collect()
    }

    /// Whether every one of them that serves `environment` has applied `change`, by what was read last.
    pub fn applied(&self, environment: &EnvironmentId, change: &Version) -> bool {
        self.lock().iter().all(|node| node.has_applied(environment, change))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
