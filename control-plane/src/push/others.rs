//! Nodes that are connected to other control planes of the same database, as those wrote them down.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId};
use kanat_plan_stream::{HEARTBEAT, SILENCE};

use super::nodes::{Node, Status, Version};
use super::source::{Error, Source};

/// A node of which nothing was written down for so long has gone, and its control plane with it.
/// They write at every heartbeat.
const GONE: Duration = SILENCE.saturating_add(HEARTBEAT);

/// The nodes of the others.
#[derive(Debug)]
pub struct Others {
    /// This control plane, as the others know it.
    own: BootId,
    nodes: Mutex<Vec<Node>>,
    /// When the latest reading that succeeded began; held while one is under way.
    read_at: tokio::sync::Mutex<Option<Instant>>,
}

impl Default for Others {
    fn default() -> Self {
        Self {
            own: BootId::generate(),
            nodes: Mutex::default(),
            read_at: tokio::sync::Mutex::default(),
        }
    }
}

impl Others {
    /// The name of this boot of the control plane.
    pub fn own(&self) -> &BootId {
        &self.own
    }

    /// Reads anew what the others wrote down. Who asks while it is being read shares the next
    /// reading with all who do: a hundred changes that wait for their nodes cost what one does.
    pub async fn refresh(&self, source: &Source) -> Result<(), Error> {
        if !source.is_shared() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|read_at| read_at >= asked_at) {
            return Ok(());
        }
        let begun_at = Instant::now();
        let nodes = source
            .nodes_elsewhere(&self.own, Timestamp::now().before(GONE))
            .await?;
        *self.lock() = nodes.into_iter().map(Node::from_saved).collect();
        *read_at = Some(begun_at);
        Ok(())
    }

    /// Those who are connected.
    pub fn connected(&self) -> Vec<Node> {
        let nodes = self.lock();
        nodes
            .iter()
            .filter(|node| node.status != Status::Disconnected)
            .cloned()
            .collect()
    }

    /// Whether every one of them that serves `environment` has applied `change`, by what was read
    /// last.
    pub fn applied(&self, environment: &EnvironmentId, change: &Version) -> bool {
        self.lock()
            .iter()
            .all(|node| node.has_applied(environment, change))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
