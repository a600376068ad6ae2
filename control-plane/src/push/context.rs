//! State of push that its parts share: the store, the nodes, the feeds of the environments, and the
//! channels between them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kanat_model::id::{BootId, EnvironmentId};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::feed::{Feed, Urgency};
use super::nodes::Nodes;
use super::observations::Observations;
use super::peer_nodes::PeerNodes;
use super::refusals::Refusals;
use super::set::PlanSet;
use super::source::{Error, Source};
use crate::tasks::Tasks;

/// Maximum number of snapshots in preparation at one time; the others queue.
const MAX_SNAPSHOTS: usize = 16;

/// Shared state of push.
#[derive(Debug)]
pub struct Context {
    /// Boot id of this control plane, by which other control planes know it.
    pub boot_id: BootId,
    pub source: Source,
    pub nodes: Nodes,
    pub peer_nodes: PeerNodes,
    pub refusals: Arc<Refusals>,
    /// Names of all environments, by id.
    pub environments: watch::Sender<BTreeMap<EnvironmentId, String>>,
    /// Notified when an environment may be new.
    pub unknown_environment: Notify,
    pub observations: Observations,
    /// Permits to encode a snapshot.
    pub encode_permits: Semaphore,
    pub tasks: Tasks,
    feeds: Mutex<HashMap<EnvironmentId, StartedFeed>>,
    /// Changes after each read of a feed, whether its set changed or not.
    any_feed_read: watch::Sender<()>,
}

/// Feed whose task runs until this is dropped.
#[derive(Debug)]
struct StartedFeed {
    feed: Arc<Feed>,
    _end: DropGuard,
}

impl StartedFeed {
    /// Returns whether only this and the task have the feed: no session follows it.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.feed) <= 2
    }
}

impl Context {
    pub fn new(source: Source, tasks: Tasks) -> Self {
        Self {
            boot_id: BootId::generate(),
            source,
            nodes: Nodes::default(),
            peer_nodes: PeerNodes::default(),
            refusals: Arc::default(),
            environments: watch::Sender::default(),
            unknown_environment: Notify::new(),
            observations: Observations::default(),
            encode_permits: Semaphore::new(MAX_SNAPSHOTS),
            tasks,
            feeds: Mutex::default(),
            any_feed_read: watch::Sender::new(()),
        }
    }

    /// Reads the records of the nodes of other control planes.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn refresh_peer_nodes(&self) -> Result<(), Error> {
        self.peer_nodes.refresh(&self.source, &self.boot_id).await
    }

    /// Returns the feed of an environment, and starts it on the first call.
    pub fn feed(&self, environment: &EnvironmentId) -> Arc<Feed> {
        let mut feeds = self.feeds.lock();
        if let Some(started) = feeds.get(environment) {
            return Arc::clone(&started.feed);
        }
        let feed = Arc::new(Feed::new(
            environment.clone(),
            self.source.clone(),
            Arc::clone(&self.refusals),
            self.any_feed_read.clone(),
        ));
        let end = CancellationToken::new();
        let started = StartedFeed {
            feed: Arc::clone(&feed),
            _end: end.clone().drop_guard(),
        };
        let running = Arc::clone(&feed);
        feeds.insert(environment.clone(), started);
        drop(feeds);
        self.tasks.run_until_stopped(async move {
            end.run_until_cancelled(running.run()).await;
        });
        feed
    }

    /// Ends the feeds of environments that do not exist any more. The feed of an environment that
    /// sessions follow stays, because a restore may bring the environment back before they notice
    /// that it was gone.
    pub fn end_unused_feeds(&self, exists: impl Fn(&EnvironmentId) -> bool) {
        self.feeds
            .lock()
            .retain(|id, started| exists(id) || !started.is_unused());
    }

    /// Returns the feed of an environment if it was started.
    pub fn started_feed(&self, environment: &EnvironmentId) -> Option<Arc<Feed>> {
        let feeds = self.feeds.lock();
        feeds
            .get(environment)
            .map(|started| Arc::clone(&started.feed))
    }

    /// Returns the current sets of all feeds, in no order.
    pub fn current_sets(&self) -> Vec<(EnvironmentId, Arc<PlanSet>)> {
        self.feeds
            .lock()
            .iter()
            .filter_map(|(id, started)| Some((id.clone(), started.feed.state().set?)))
            .collect()
    }

    /// Returns a receiver that changes after each read of a feed, whether its set changed or not.
    pub fn watch_feed_reads(&self) -> watch::Receiver<()> {
        self.any_feed_read.subscribe()
    }

    /// Notifies the feed of `environment` that it has changed: the feed reads the store.
    pub fn notify_changed(&self, environment: &EnvironmentId, urgency: Urgency) {
        match self.started_feed(environment) {
            Some(feed) => feed.request_read(urgency),
            None => self.unknown_environment.notify_one(),
        }
    }

    /// Encodes a set off the runtime's threads, at most 16 at a time. A set that is encoded already
    /// also waits for its turn, but is not encoded again.
    pub async fn encode(&self, set: Arc<PlanSet>) {
        // The semaphore is never closed. If the encoder panics, the reader of the bytes calls
        // `encoded()` again, and panics there.
        let _permit = self.encode_permits.acquire().await;
        let encoding = tokio::task::spawn_blocking(move || {
            set.encoded();
        });
        let _ = encoding.await;
    }
}
