//! What is written down of a node: for after a restart, and for the other control planes, which
//! wait for its acks too.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kanat_model::id::{EnvironmentId, NodeId};
use kanat_plan_stream::HEARTBEAT;
use kanat_store::node::Running;
use tokio::sync::Notify;
use tokio::time::interval;

use super::hub::Hub;

/// How often, where nobody but this process reads it.
const SELDOM: Duration = Duration::from_secs(60);

/// A node, as it was written down last.
#[derive(Debug)]
pub struct Written {
    node: NodeId,
    environments: BTreeMap<EnvironmentId, Running>,
}

impl Written {
    /// Nothing is known of what was written down of it.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            environments: BTreeMap::new(),
        }
    }

    /// Writes from time to time that the node is there; and where others read it, at once what it
    /// `answered`.
    pub async fn keep(&mut self, hub: &Hub, answered: &Notify) -> Infallible {
        let is_shared = hub.source.is_shared();
        let mut due = interval(if is_shared { HEARTBEAT } else { SELDOM });
        loop {
            tokio::select! {
                _ = due.tick() => {}
                () = answered.notified(), if is_shared => {}
            }
            self.write(hub).await;
        }
    }

    /// Writes how the node is now. Failing to is no reason to fail the node.
    pub async fn write(&mut self, hub: &Hub) {
        let Some(node) = hub.nodes.get(&self.node) else {
            return;
        };
        let node = node.to_saved(hub.others.own());
        let changed: Vec<_> = node
            .environments
            .iter()
            .filter(|now| self.environments.get(&now.environment_id) != Some(now))
            .collect();
        let gone = self.environments.keys().filter(|id| {
            node.environments
                .iter()
                .all(|now| now.environment_id != **id)
        });
        match hub.source.save_node(&node, &changed, gone).await {
            Ok(()) => {
                let now = node
                    .environments
                    .into_iter()
                    .map(|now| (now.environment_id.clone(), now));
                self.environments = now.collect();
            }
            Err(error) => {
                tracing::warn!(
                    node.id = %self.node,
                    %error,
                    "cannot write down how a node was last seen",
                )
            }
        }
    }
}
