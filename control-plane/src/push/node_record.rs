//! Record of a node in the store. It is read after a restart, and by other control planes, which
//! wait for the node's acks too.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kanat_model::id::{EnvironmentId, NodeId};
use kanat_plan_stream::HEARTBEAT_INTERVAL;
use kanat_store::node::EnvironmentStatus;
use tokio::sync::Notify;
use tokio::time::interval;

use super::context::Context;

/// Interval of writing where no other process reads the record.
const UNSHARED_INTERVAL: Duration = Duration::from_secs(60);

/// Writer of the record of one node, with what it wrote last.
#[derive(Debug)]
pub struct NodeRecordWriter {
    node: NodeId,
    environments: BTreeMap<EnvironmentId, EnvironmentStatus>,
}

impl NodeRecordWriter {
    /// Creates a writer of a record whose content is not known.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            environments: BTreeMap::new(),
        }
    }

    /// Writes the record from time to time and, where other control planes read it, at once when
    /// the node has `answered`.
    pub async fn run(&mut self, context: &Context, answered: &Notify) -> Infallible {
        let is_shared = context.source.is_shared();
        let mut due = interval(if is_shared {
            HEARTBEAT_INTERVAL
        } else {
            UNSHARED_INTERVAL
        });
        loop {
            tokio::select! {
                _ = due.tick() => {}
                () = answered.notified(), if is_shared => {}
            }
            self.write(context).await;
        }
    }

    /// Writes the node's present state. A store that cannot be written is no reason to fail the
    /// node.
    pub async fn write(&mut self, context: &Context) {
        let Some(node) = context.nodes.get(&self.node) else {
            return;
        };
        let node = node.to_record(&context.boot_id);
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
        match context.source.save_node(&node, &changed, gone).await {
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
