//! The hub: where the rest of the control plane says that something changed, and asks whether it is
//! live.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kanat_model::id::{BootId, EnvironmentId, NodeId};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::{Asking, Observation};
use super::feed::Feed;
use super::follow;
use super::nodes::{Node, Nodes, Status, Version};
use super::others::Others;
use super::refusals::Refusals;
use super::set::Set;
use super::source::Source;

/// How long a change is waited for before its answer says that it is pending.
const APPLY_DEADLINE: Duration = Duration::from_secs(5);

/// First and longest wait between looks at what the nodes of other control planes run.
const LOOK_ELSEWHERE: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(200));

/// What nodes have seen of connectors and nobody has taken up yet.
const OBSERVATIONS: usize = 1000;

/// Maximum number of snapshots in preparation at one time; the others queue.
const SNAPSHOTS: usize = 16;

/// Whether a change is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// Every connected node that serves the environment has answered for it.
    Everywhere,
    /// Some have not, within the deadline.
    Pending,
}

/// The nodes' side of the control plane.
#[derive(Debug)]
pub struct Hub {
    pub(super) source: Source,
    pub(super) nodes: Nodes,
    pub(super) others: Others,
    pub(super) refusals: Refusals,
    /// Ids and names of all environments.
    pub(super) environments: watch::Sender<BTreeMap<EnvironmentId, String>>,
    /// Told when an environment may be new.
    pub(super) unknown: Notify,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    feeds: Mutex<HashMap<EnvironmentId, Arc<Feed>>>,
    /// Woken when a feed has another set.
    sets: watch::Sender<()>,
    pub(super) snapshots: Semaphore,
    observed: mpsc::Sender<Observation>,
    observations: Mutex<Option<mpsc::Receiver<Observation>>>,
    pub(super) asking: Asking,
    /// A node of the same process will come.
    has_own_node: AtomicBool,
}

impl Hub {
    /// Begins to follow the store.
    pub fn new(source: Source) -> Arc<Self> {
        let (observed, observations) = mpsc::channel(OBSERVATIONS);
        let hub = Arc::new(Self {
            source,
            nodes: Nodes::default(),
            others: Others::default(),
            environments: watch::Sender::default(),
            unknown: Notify::new(),
            refusals: Refusals::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            feeds: Mutex::default(),
            sets: watch::Sender::new(()),
            snapshots: Semaphore::new(SNAPSHOTS),
            observed,
            observations: Mutex::new(Some(observations)),
            asking: Asking::default(),
            has_own_node: AtomicBool::new(false),
        });
        hub.tasks.spawn(follow::run(Arc::clone(&hub)));
        hub
    }

    /// Says that a node of the same process will come: no change is live before it has.
    pub fn expect_own_node(&self) {
        self.has_own_node.store(true, Ordering::Relaxed);
    }

    /// What nodes have seen connectors do, for the one who takes it up; none when somebody does
    /// already.
    pub fn observations(&self) -> Option<mpsc::Receiver<Observation>> {
        self.observations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Hands on what a node has seen. What finds no room is dropped: nodes will see it again.
    pub(super) fn observe(&self, observation: Observation) {
        let _ = self.observed.try_send(observation);
    }

    /// Says that `environment` reached `generation`; nodes get it once a burst of changes has
    /// passed.
    pub fn changed(&self, environment: &EnvironmentId, generation: u64) {
        match self.existing(environment) {
            Some(feed) => feed.wanted(generation),
            None => self.unknown.notify_one(),
        }
    }

    /// Says the same of a change that must not wait for others: a pause, a revoked key.
    pub fn changed_now(&self, environment: &EnvironmentId, generation: u64) {
        match self.existing(environment) {
            Some(feed) => feed.wanted_now(generation),
            None => self.unknown.notify_one(),
        }
    }

    /// Whether more of `environment` was read than the store has: it was restored from a backup
    /// meanwhile. Whoever asks keeps others from changing the environment.
    pub fn is_ahead_of(&self, environment: &EnvironmentId, next: &Version) -> bool {
        let set = self.existing(environment).and_then(|feed| feed.state().set);
        set.is_some_and(|set| set.epoch == next.epoch && set.generation >= next.generation)
    }

    /// Waits until every connected node that serves `environment` runs `change` or has refused part
    /// of it, 5 s at most; those too that are connected to other control planes. A node of the same
    /// process is waited for from the beginning: it is connected a moment later than requests are
    /// served.
    pub async fn applied(&self, environment: &EnvironmentId, change: &Version) -> Applied {
        let mut changed = self.nodes.watch();
        let here = async {
            while self.own_node_is_to_come() || !self.nodes.applied(environment, change) {
                if changed.changed().await.is_err() {
                    break;
                }
            }
        };
        let everywhere = async { tokio::join!(here, self.applied_elsewhere(environment, change)) };
        match tokio::time::timeout(APPLY_DEADLINE, everywhere).await {
            Ok(_) => Applied::Everywhere,
            Err(_) => Applied::Pending,
        }
    }

    fn own_node_is_to_come(&self) -> bool {
        self.has_own_node.load(Ordering::Relaxed) && self.nodes.list().is_empty()
    }

    /// The others write down what their nodes answer as it comes.
    async fn applied_elsewhere(&self, environment: &EnvironmentId, change: &Version) {
        let mut wait = LOOK_ELSEWHERE.0;
        loop {
            match self.others.refresh(&self.source).await {
                Ok(()) if self.others.applied(environment, change) => return,
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot see what nodes of other control planes run")
                }
            }
            sleep(wait).await;
            wait = (wait * 2).min(LOOK_ELSEWHERE.1);
        }
    }

    /// Connected nodes that refused the present form of a resource, and why.
    pub fn rejections(&self, resource_id: &str) -> Vec<(NodeId, String)> {
        let of_node = |node: Node| {
            let rejected = node
                .environments
                .into_values()
                .flat_map(|running| running.rejected);
            rejected
                .filter(|r| r.resource_id == resource_id)
                .map(move |r| (node.id.clone(), r.message))
                .collect()
        };
        self.connected()
            .into_iter()
            .flat_map::<Vec<_>, _>(of_node)
            .collect()
    }

    /// Every node that was seen, connected ones first; those too that are connected to other
    /// control planes.
    pub fn nodes(&self) -> Vec<Node> {
        let mut nodes = self.nodes.list();
        for other in self.others.connected() {
            match nodes.iter_mut().find(|node| node.id == other.id) {
                Some(own) if own.last_seen < other.last_seen => *own = other,
                Some(_) => {}
                None => nodes.push(other),
            }
        }
        nodes.sort_by_key(|node| node.status == Status::Disconnected);
        nodes
    }

    /// What the nodes of each environment are to run, for those that some node has asked for.
    pub fn versions(&self) -> Vec<(EnvironmentId, Version)> {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let version = |set: Arc<Set>| Version {
            epoch: set.epoch.clone(),
            generation: set.generation,
        };
        let known = feeds
            .iter()
            .filter_map(|(id, feed)| Some((id.clone(), version(feed.state().set?))));
        let mut known: Vec<_> = known.collect();
        drop(feeds);
        known.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        known
    }

    /// Cancelled when the control plane shuts down: long answers end with it.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Ends every stream, those of callers who follow messages too, and begins no new one.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends every stream and feed, and waits for them.
    pub async fn close(&self) {
        self.stop();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// The name of this boot of the control plane, as the others of its database know it.
    pub fn boot_id(&self) -> &BootId {
        self.others.own()
    }

    /// Runs a job of the control plane until it shuts down.
    pub fn run_until_stopped(&self, job: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = job => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Runs what has to come to its end, whoever stops waiting for it; a shutdown waits for it too.
    pub fn run_to_its_end(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// The feed of an environment, begun when this is the first to ask.
    pub(super) fn feed(self: &Arc<Self>, environment: &EnvironmentId) -> Arc<Feed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(environment) {
            return Arc::clone(feed);
        }
        let feed = Arc::new(Feed::new(environment.clone()));
        feeds.insert(environment.clone(), Arc::clone(&feed));
        drop(feeds);
        let hub = Arc::clone(self);
        let running = Arc::clone(&feed);
        self.tasks.spawn(async move {
            tokio::select! {
                () = running.run(&hub) => {}
                () = hub.stop.cancelled() => {}
            }
        });
        feed
    }

    /// Woken when any environment has another set.
    pub(super) fn watch_sets(&self) -> watch::Receiver<()> {
        self.sets.subscribe()
    }

    pub(super) fn sets_changed(&self) {
        self.sets.send_replace(());
    }

    /// Encodes a set off the runtime's threads, at most 16 at a time; one that is encoded already
    /// costs nothing.
    pub(super) async fn encode(&self, set: Arc<Set>) {
        // The semaphore is never closed, and a panic in the encoder repeats in the task that needs
        // the bytes.
        let _permit = self.snapshots.acquire().await;
        let encoding = tokio::task::spawn_blocking(move || {
            set.encoded();
        });
        let _ = encoding.await;
    }

    pub(super) fn existing(&self, environment: &EnvironmentId) -> Option<Arc<Feed>> {
        self.feeds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(environment)
            .cloned()
    }

    fn connected(&self) -> Vec<Node> {
        let mut nodes = self.nodes();
        nodes.retain(|node| node.status != Status::Disconnected);
        nodes
    }
}
