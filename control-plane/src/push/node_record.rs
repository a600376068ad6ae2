//! Record of a node in the store. It is read after a restart, and by other control planes, which
//! wait for the node's acks too.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, NodeId};
use kanat_plan_stream::HEARTBEAT_INTERVAL;
use kanat_store::node::EnvironmentStatus;
use tokio::sync::Notify;
use tokio::time::interval;

use super::context::Context;
use super::source::NodeStates;

/// Interval of writing where no other process reads the record.
const UNSHARED_INTERVAL: Duration = Duration::from_secs(60);

/// Writer of the record of one node.
#[derive(Debug)]
pub struct NodeRecordWriter {
    node: NodeId,
    /// States of the node as the store has them; `None` before the first write. The store may have
    /// states from an earlier session then, also in environments that the node no longer serves.
    written: Option<BTreeMap<EnvironmentId, EnvironmentStatus>>,
}

impl NodeRecordWriter {
    /// Creates a writer of a record whose content is not known.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            written: None,
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
        let mut record = node.to_record(&context.boot_id);
        let states = std::mem::take(&mut record.environments);
        match context
            .source
            .save_node(record, self.unwritten(&states), Timestamp::now())
            .await
        {
            Ok(true) => {
                let written = states
                    .into_iter()
                    .map(|state| (state.environment_id.clone(), state));
                self.written = Some(written.collect());
            }
            // The store has the later record of another control plane: the states are still
            // unwritten.
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(node.id = %self.node, %error, "cannot save the record of a node")
            }
        }
    }

    /// Returns the states to write, so that the store has `present` and no others.
    fn unwritten<'s>(&self, present: &'s [EnvironmentStatus]) -> NodeStates<'s> {
        let Some(written) = &self.written else {
            return NodeStates::All(present);
        };
        let is_present =
            |id: &EnvironmentId| present.iter().any(|state| state.environment_id == *id);
        if !written.keys().all(is_present) {
            return NodeStates::All(present);
        }
        let is_changed =
            |state: &&EnvironmentStatus| written.get(&state.environment_id) != Some(*state);
        NodeStates::Changed(present.iter().filter(is_changed).collect())
    }
}
