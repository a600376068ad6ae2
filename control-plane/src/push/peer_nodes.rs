//! Nodes that are connected to other control planes of the same database, by their records.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId};
use kanat_plan_stream::{HEARTBEAT_INTERVAL, SILENCE_TIMEOUT};

use super::nodes::{Node, SetVersion, Status};
use super::source::{Error, Source};

/// Age of a record after which its node, or the control plane of the node, is considered gone.
/// Control planes write records at every heartbeat.
const MAX_RECORD_AGE: Duration = SILENCE_TIMEOUT.saturating_add(HEARTBEAT_INTERVAL);

/// Nodes of other control planes.
#[derive(Debug, Default)]
pub struct PeerNodes {
    nodes: Mutex<Vec<Node>>,
    /// Start of the latest read that succeeded; locked during a read.
    read_at: tokio::sync::Mutex<Option<Instant>>,
}

impl PeerNodes {
    /// Reads the records of other control planes than the one with the boot id `own`. Calls that
    /// arrive during a read share one following read: a hundred changes that wait for their nodes
    /// cost the reads of one.
    pub async fn refresh(&self, source: &Source, own: &BootId) -> Result<(), Error> {
        if !source.is_shared() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|read_at| read_at >= asked_at) {
            return Ok(());
        }
        let begun_at = Instant::now();
        let now = Timestamp::now();
        let nodes = source.peer_nodes(own, MAX_RECORD_AGE, now).await?;
        *self.nodes.lock() = nodes.into_iter().map(Node::from_record).collect();
        *read_at = Some(begun_at);
        Ok(())
    }

    /// Returns the connected nodes.
    pub fn connected(&self) -> Vec<Node> {
        let nodes = self.nodes.lock();
        nodes
            .iter()
            .filter(|node| node.status != Status::Disconnected)
            .cloned()
            .collect()
    }

    /// Returns whether every connected node that serves `environment` and does not drain has
    /// applied `version`, by the records that were read last.
    pub fn is_applied(&self, environment: &EnvironmentId, version: &SetVersion) -> bool {
        self.nodes
            .lock()
            .iter()
            .all(|node| node.has_applied_or_is_exempt(environment, version))
    }
}
