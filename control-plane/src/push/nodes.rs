//! State of the nodes: connections, applied versions, refused resources, load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, EpochId, NodeId};
use kanat_plan_stream::SetHash;
use kanat_store::node as record;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::grant::Grant;

/// Time for which a disconnected node stays in the list.
pub const DISCONNECTED_RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// State of a node.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: NodeId,
    pub boot_id: BootId,
    /// Address for operators; may be empty.
    pub address: String,
    pub build: String,
    pub status: Status,
    pub last_seen: Timestamp,
    /// Number of messages in process.
    pub in_flight: u32,
    /// State of the environments that the node serves.
    pub environments: BTreeMap<EnvironmentId, EnvironmentStatus>,
    pub scope: Scope,
}

/// Scope of a node's environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All environments, also those of the future.
    All,
    /// The environments that the node named.
    Named,
}

impl Node {
    /// Reads the record of a node.
    pub fn from_record(record: record::Node) -> Self {
        let environments = record.environments.into_iter().map(|row| {
            (
                row.environment_id.clone(),
                EnvironmentStatus::from_record(row),
            )
        });
        Self {
            id: record.id,
            boot_id: record.boot_id,
            address: record.address,
            build: record.build,
            status: Status::parse(&record.status),
            last_seen: record.last_seen_at,
            in_flight: record.in_flight,
            environments: environments.collect(),
            scope: if record.serves_all {
                Scope::All
            } else {
                Scope::Named
            },
        }
    }

    /// Returns the record of the node, which other control planes read. A connected node is
    /// connected to the control plane `own`.
    pub fn to_record(&self, own: &BootId) -> record::Node {
        let control_plane = match self.status {
            Status::Connected | Status::Draining => own.clone(),
            Status::Disconnected => BootId::from(""),
        };
        record::Node {
            id: self.id.clone(),
            boot_id: self.boot_id.clone(),
            address: self.address.clone(),
            build: self.build.clone(),
            control_plane,
            status: self.status.as_str().to_owned(),
            in_flight: self.in_flight,
            environments: self
                .environments
                .iter()
                .map(|(id, running)| running.to_record(id))
                .collect(),
            serves_all: self.scope == Scope::All,
            last_seen_at: self.last_seen,
        }
    }

    /// Returns whether the node runs this version of the environment's set or a later one, or is
    /// exempt from the wait.
    pub fn has_applied_or_is_exempt(
        &self,
        environment: &EnvironmentId,
        version: &SetVersion,
    ) -> bool {
        match (self.status, self.environments.get(environment)) {
            (Status::Draining | Status::Disconnected, _) => true,
            (Status::Connected, Some(running)) => running
                .applied
                .as_ref()
                .is_some_and(|applied| applied.includes(version)),
            // The node does not know the environment. A node that serves all is waited for, because
            // it will serve a new one in a moment; a node with a list does not serve it.
            (Status::Connected, None) => self.scope == Scope::Named,
        }
    }
}

/// Status of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Connected,
    /// Connected; finishes its messages and accepts none.
    Draining,
    Disconnected,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Draining => "draining",
            Self::Disconnected => "disconnected",
        }
    }

    fn parse(text: &str) -> Self {
        let all = [Self::Connected, Self::Draining, Self::Disconnected];
        all.into_iter()
            .find(|status| status.as_str() == text)
            .unwrap_or(Self::Disconnected)
    }
}

/// Epoch and generation of an environment's set, which are its position among all changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVersion {
    pub epoch: EpochId,
    pub generation: u64,
}

impl SetVersion {
    /// Returns whether a set of this version has the changes up to `version`. Generations of
    /// different epochs cannot be compared.
    fn includes(&self, version: &Self) -> bool {
        self.epoch == version.epoch && self.generation >= version.generation
    }

    /// Returns the number of generations between the `applied` one and this one. A node of another
    /// epoch, because the store was restored meanwhile, lags by all generations.
    pub fn lag_of(&self, applied: Option<&Self>) -> u64 {
        match applied {
            Some(applied) if applied.epoch == self.epoch => {
                self.generation.saturating_sub(applied.generation)
            }
            Some(_) => self.generation.max(1),
            None => self.generation,
        }
    }
}

/// State of one environment on a node.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentStatus {
    /// The last set version that the node applied; none before its first.
    pub applied: Option<SetVersion>,
    pub set_hash: SetHash,
    /// Resources that the node does not run as its set has them, with the reason: it refused them,
    /// or they are withheld from its build. If the node refused the whole set, the list has one
    /// entry for it, under the resource id of the environment's settings.
    pub rejected: Vec<Rejection>,
}

impl EnvironmentStatus {
    fn from_record(record: record::EnvironmentStatus) -> Self {
        let rejected = record.rejected.into_iter();
        Self {
            applied: (!record.epoch.is_empty()).then(|| SetVersion {
                epoch: EpochId::new(record.epoch),
                generation: record.generation,
            }),
            set_hash: SetHash::from_hex(&record.set_hash).unwrap_or_default(),
            rejected: rejected
                .map(|(resource_id, message)| Rejection {
                    resource_id,
                    message,
                })
                .collect(),
        }
    }

    fn to_record(&self, environment: &EnvironmentId) -> record::EnvironmentStatus {
        let (epoch, generation) = self.applied.clone().map_or((String::new(), 0), |applied| {
            (applied.epoch.into_string(), applied.generation)
        });
        let rejected = self
            .rejected
            .iter()
            .map(|r| (r.resource_id.clone(), r.message.clone()));
        record::EnvironmentStatus {
            environment_id: environment.clone(),
            epoch,
            generation,
            set_hash: self.set_hash.to_string(),
            rejected: rejected.collect(),
        }
    }
}

/// Resource that a node does not run as its set has it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub resource_id: String,
    pub message: String,
}

/// All nodes that have connected.
#[derive(Debug)]
pub struct Nodes {
    known: Mutex<BTreeMap<NodeId, NodeEntry>>,
    /// True once a node of this process has connected, also after it has left.
    own_connected: AtomicBool,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct NodeEntry {
    node: Node,
    /// Grant of its session.
    grant: Grant,
    /// Ends the session when another one replaces it.
    replaced: CancellationToken,
    /// Request to drain within that time.
    drain: watch::Sender<Option<Duration>>,
}

/// A session's registration of its node. Updates of a replaced session have no effect.
#[derive(Debug)]
pub struct Registration<'a> {
    nodes: &'a Nodes,
    id: NodeId,
    replaced: CancellationToken,
    drain: watch::Receiver<Option<Duration>>,
}

/// Error of a node that cannot be registered.
#[derive(Debug, thiserror::Error)]
#[error(
    "the node id {:?} is that of a node which is connected with another token or certificate",
    .0.as_str()
)]
pub struct IdInUse(NodeId);

impl Default for Nodes {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            own_connected: AtomicBool::new(false),
            changed: watch::Sender::new(()),
        }
    }
}

impl Nodes {
    /// Registers a node that has connected, and ends its former session.
    ///
    /// # Errors
    /// The id is that of a connected node with other credentials, or of the node of this process.
    pub fn connect(
        &self,
        node: Node,
        grant: &Grant,
        replaced: CancellationToken,
    ) -> Result<Registration<'_>, IdInUse> {
        let id = node.id.clone();
        let oldest = Timestamp::now().before(DISCONNECTED_RETENTION);
        let mut known = self.known.lock();
        known.retain(|_, k| k.node.status != Status::Disconnected || k.node.last_seen > oldest);
        let is_taken = known.get(&id).is_some_and(|former| {
            let is_held = former.node.status != Status::Disconnected || former.grant.is_own();
            is_held && !grant.may_replace(&former.grant)
        });
        if is_taken {
            return Err(IdInUse(id));
        }
        let (drain, requests) = watch::channel(None);
        if let Some(former) = known.insert(
            id.clone(),
            NodeEntry {
                node,
                grant: grant.clone(),
                replaced: replaced.clone(),
                drain,
            },
        ) {
            former.replaced.cancel();
        }
        drop(known);
        if grant.is_own() {
            self.own_connected.store(true, Ordering::Relaxed);
        }
        self.changed.send_replace(());
        Ok(Registration {
            nodes: self,
            id,
            replaced,
            drain: requests,
        })
    }

    /// Asks a node to drain, if it is connected here. A node that is connected to another control
    /// plane is asked by that one.
    pub fn drain(&self, id: &NodeId, within: Duration) {
        if let Some(known) = self.known.lock().get(id) {
            known.drain.send_replace(Some(within));
        }
    }

    /// Returns every node, connected ones first, then by id.
    pub fn list(&self) -> Vec<Node> {
        let mut nodes: Vec<_> = self.known.lock().values().map(|k| k.node.clone()).collect();
        nodes.sort_by_key(|node| node.status == Status::Disconnected);
        nodes
    }

    pub fn get(&self, id: &NodeId) -> Option<Node> {
        self.known.lock().get(id).map(|known| known.node.clone())
    }

    /// Returns whether every connected node that serves `environment` and does not drain has
    /// applied `version`.
    pub fn is_applied(&self, environment: &EnvironmentId, version: &SetVersion) -> bool {
        self.known
            .lock()
            .values()
            .all(|known| known.node.has_applied_or_is_exempt(environment, version))
    }

    /// Returns whether a node of this process has connected since the start.
    pub fn has_own_connected(&self) -> bool {
        self.own_connected.load(Ordering::Relaxed)
    }

    /// Returns a receiver that changes with the state of any node.
    pub fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

impl Registration<'_> {
    /// Changes the state of the node, unless another session has replaced this one.
    pub fn update(&self, change: impl FnOnce(&mut Node)) {
        if let Some(known) = self.nodes.known.lock().get_mut(&self.id)
            && !self.replaced.is_cancelled()
        {
            change(&mut known.node);
        }
        self.nodes.changed.send_replace(());
    }

    /// Returns the requests that the node drains within a time.
    pub fn drain_requests(&self) -> watch::Receiver<Option<Duration>> {
        self.drain.clone()
    }

    /// Changes the state of the node after a message from it.
    pub fn message_received(&self, change: impl FnOnce(&mut Node)) {
        self.update(|node| {
            node.last_seen = Timestamp::now();
            change(node);
        });
    }
}

/// A session that ends leaves its node listed as disconnected.
impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.update(|node| {
            node.status = Status::Disconnected;
            node.in_flight = 0;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_all_environments_has_a_new_one_to_apply_before_it_hears_of_it() {
        let node = |scope, status| Node {
            id: NodeId::from("node_1"),
            boot_id: BootId::from("boot_1"),
            address: String::new(),
            build: String::new(),
            status,
            last_seen: Timestamp::from_millis(0),
            in_flight: 0,
            environments: BTreeMap::new(),
            scope,
        };
        let change = SetVersion {
            epoch: EpochId::from("epoch_1"),
            generation: 1,
        };
        for (scope, status, applied) in [
            (Scope::All, Status::Connected, false),
            (Scope::Named, Status::Connected, true),
            (Scope::All, Status::Draining, true),
            (Scope::All, Status::Disconnected, true),
        ] {
            assert_eq!(
                node(scope, status)
                    .has_applied_or_is_exempt(&EnvironmentId::from("env_1"), &change),
                applied,
                "{status:?}"
            );
        }
    }

    #[test]
    fn a_node_of_another_epoch_has_every_generation_to_go() {
        let epoch = EpochId::from("epoch_1");
        let version = |generation| SetVersion {
            epoch: epoch.clone(),
            generation,
        };
        let former = SetVersion {
            epoch: EpochId::from("epoch_0"),
            generation: 90,
        };
        for (generation, applied, lag) in [
            (40, Some(version(40)), 0),
            (40, Some(version(38)), 2),
            (40, Some(version(41)), 0),
            (40, None, 40),
            (0, None, 0),
            (40, Some(former.clone()), 40),
            (0, Some(former), 1),
        ] {
            assert_eq!(
                version(generation).lag_of(applied.as_ref()),
                lag,
                "{generation}, {applied:?}"
            );
        }
    }
}
