//! Interface of push to the rest of the control plane: announces changes, waits until they are
//! live, and lists the nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kanat_model::backoff::Backoff;
use kanat_model::id::{BootId, EnvironmentId, NodeId};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::context::Context;
use super::feed::Urgency;
use super::follow;
use super::nodes::{Node, SetVersion, Status};
use super::observations::Observation;
use super::source::Source;
use crate::tasks::Tasks;

/// Time for which the answer to a change waits for the nodes. Then it says that the change is
/// pending.
const APPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Intervals between reads of what the nodes of other control planes run.
const POLL_OTHERS: Backoff = Backoff {
    first: Duration::from_millis(20),
    max: Duration::from_millis(200),
};

/// Longest time until a node of another control plane has reported its observations. Such a node
/// cannot be asked: every node reports each 2 s by itself.
const MAX_REPORT_DELAY: Duration = Duration::from_millis(2_500);

/// How far a change has reached the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollout {
    /// Every connected node that serves the environment runs the change, or has refused some of its
    /// resources. Draining nodes are not waited for.
    Everywhere,
    /// Some nodes did not run the change in time: they have not answered, or refused the whole set.
    Pending,
}

/// Handle of push.
#[derive(Debug)]
pub struct Hub {
    pub(super) context: Arc<Context>,
    /// True if a node of the same process will connect.
    expects_own_node: AtomicBool,
}

impl Hub {
    /// Begins to follow the store, until the tasks are stopped.
    pub fn new(source: Source, tasks: Tasks) -> Arc<Self> {
        let context = Arc::new(Context::new(source, tasks));
        context
            .tasks
            .run_until_stopped(follow::run(Arc::clone(&context)));
        Arc::new(Self {
            context,
            expects_own_node: AtomicBool::new(false),
        })
    }

    /// Notes that a node of the same process will connect: [`Self::wait_until_applied`] waits for
    /// its first connection.
    pub fn expect_own_node(&self) {
        self.expects_own_node.store(true, Ordering::Relaxed);
    }

    /// Takes the receiver of the observations that nodes report of connectors; `None` from the
    /// second call on.
    pub fn take_observation_receiver(&self) -> Option<mpsc::Receiver<Observation>> {
        self.context.observations.take_receiver()
    }

    /// Notes that all that a node had observed when it was asked has been processed.
    pub fn observations_processed(&self, node: NodeId, nonce: u64) {
        self.context.observations.processed(node, nonce);
    }

    /// Asks the nodes of an environment for what they have observed of connectors, and waits until
    /// it has been processed. Waits 2.5 s if another control plane has such nodes.
    pub async fn flush_observations(&self, environment: &EnvironmentId) {
        let serves = |node: &Node| {
            node.status != Status::Disconnected && node.environments.contains_key(environment)
        };
        let nodes = self.context.nodes.list().into_iter().filter(serves);
        let own: Vec<NodeId> = nodes.map(|node| node.id).collect();
        let others = self.context.peer_nodes.connected();
        let has_others = others
            .iter()
            .any(|node| serves(node) && !own.contains(&node.id));
        let others_reported = async {
            if has_others {
                sleep(MAX_REPORT_DELAY).await;
            }
        };
        tokio::join!(self.context.observations.ask(&own), others_reported);
    }

    /// Notes that `environment` has changed; nodes get it once a burst of changes has passed.
    pub fn notify_changed(&self, environment: &EnvironmentId) {
        self.context.notify_changed(environment, Urgency::Batched);
    }

    /// Notes a change that must not wait for others: a pause, a revoked key.
    pub fn notify_changed_now(&self, environment: &EnvironmentId) {
        self.context.notify_changed(environment, Urgency::Immediate);
    }

    /// Returns whether the feed of `environment` has the generation `next` or a later one already:
    /// the store was restored from a backup meanwhile. The caller keeps others from changing the
    /// environment.
    pub fn is_ahead_of(&self, environment: &EnvironmentId, next: &SetVersion) -> bool {
        let feed = self.context.started_feed(environment);
        let set = feed.and_then(|feed| feed.state().set);
        set.is_some_and(|set| set.epoch == next.epoch && set.generation >= next.generation)
    }

    /// Waits until every connected node that serves `environment` and does not drain runs `version`
    /// or has refused part of it, 5 s at most. That includes the nodes of other control planes. If
    /// a node of the same process is expected, it waits for the first connection of that node,
    /// which follows a moment after the first requests are served. A node that refused the whole
    /// set is waited for, because it may still apply the next one.
    pub async fn wait_until_applied(
        &self,
        environment: &EnvironmentId,
        version: &SetVersion,
    ) -> Rollout {
        let nodes = &self.context.nodes;
        let mut changed = nodes.watch();
        let here = async {
            while self.awaits_own_node() || !nodes.is_applied(environment, version) {
                if changed.changed().await.is_err() {
                    break;
                }
            }
        };
        let everywhere = async { tokio::join!(here, self.applied_by_peers(environment, version)) };
        match timeout(APPLY_TIMEOUT, everywhere).await {
            Ok(_) => Rollout::Everywhere,
            Err(_) => Rollout::Pending,
        }
    }

    fn awaits_own_node(&self) -> bool {
        self.expects_own_node.load(Ordering::Relaxed) && !self.context.nodes.has_own_connected()
    }

    /// Waits until the nodes of other control planes run `version`, by the records in the store.
    async fn applied_by_peers(&self, environment: &EnvironmentId, version: &SetVersion) {
        let peers = &self.context.peer_nodes;
        let mut reads = 0;
        loop {
            match self.context.refresh_peer_nodes().await {
                Ok(()) if peers.is_applied(environment, version) => return,
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot see what nodes of other control planes run")
                }
            }
            reads += 1;
            sleep(POLL_OTHERS.delay(reads)).await;
        }
    }

    /// Returns the connected nodes that do not run a resource as their set has it, and why.
    pub fn rejections(&self, resource_id: &str) -> Vec<(NodeId, String)> {
        let mut rejections = Vec::new();
        for node in self.nodes() {
            if node.status == Status::Disconnected {
                continue;
            }
            let rejected = node.environments.into_values().flat_map(|e| e.rejected);
            let of_resource = rejected.filter(|rejection| rejection.resource_id == resource_id);
            rejections.extend(of_resource.map(|rejection| (node.id.clone(), rejection.message)));
        }
        rejections
    }

    /// Returns every node that was seen here or is connected to another control plane, connected
    /// ones first.
    pub fn nodes(&self) -> Vec<Node> {
        let mut nodes = self.context.nodes.list();
        for other in self.context.peer_nodes.connected() {
            match nodes.iter_mut().find(|node| node.id == other.id) {
                Some(own) if own.last_seen < other.last_seen => *own = other,
                Some(_) => {}
                None => nodes.push(other),
            }
        }
        nodes.sort_by_key(|node| node.status == Status::Disconnected);
        nodes
    }

    /// Returns the current set version of each environment that a node has asked for, in order of
    /// the environments' ids.
    pub fn current_versions(&self) -> Vec<(EnvironmentId, SetVersion)> {
        let mut versions: Vec<_> = self
            .context
            .current_sets()
            .into_iter()
            .map(|(id, set)| {
                let epoch = set.epoch.clone();
                let generation = set.generation;
                (id, SetVersion { epoch, generation })
            })
            .collect();
        versions.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        versions
    }

    /// Returns the boot id of this control plane, by which other control planes know it.
    pub fn control_plane_boot_id(&self) -> &BootId {
        &self.context.boot_id
    }
}
