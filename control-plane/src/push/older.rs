//! What nodes of an older build get of an environment, made aside. To make it costs whole tables,
//! so that it is done by a thread that may block, once for all such nodes, and of the latest set
//! alone however many came meanwhile. Whoever takes sets as they are published waits for none of
//! it; and nothing is made when no such node is connected.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::feed::Feed;
use super::hub::Hub;
use super::peer::Peer;
use super::set::{Set, Unparted};

/// One environment's sets for builds that know no lookup tables in parts, as long as one has them.
#[derive(Debug, Default)]
pub struct Older {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    made: Option<Unparted>,
    is_making: bool,
}

/// What a node is to run.
#[derive(Debug, Clone)]
pub struct Target {
    pub set: Arc<Set>,
    /// Reads of the store that it is known to be after; `None` when there is a later set, and
    /// nothing was made of that yet.
    pub reads: Option<u64>,
}

impl Target {
    /// Whether there is nothing to send before a later one is made. What the node refused of this
    /// one, it would refuse again.
    pub fn is_held_by(&self, peer: &Peer) -> bool {
        self.reads.is_none() && peer.generation() == Some((&self.set.epoch, self.set.generation))
    }
}

impl Older {
    /// The latest that there is. Begins to make what the feed has, if that is later; sessions are
    /// woken when it is there.
    pub fn latest(self: &Arc<Self>, hub: &Arc<Hub>, feed: &Arc<Feed>) -> Option<Target> {
        let feed_has = feed.state();
        let set = feed_has.set?;
        let mut state = self.lock();
        let is_current = state.made.as_ref().is_some_and(|made| made.is_of(&set));
        if !is_current && !state.is_making {
            state.is_making = true;
            let own = Arc::clone(self);
            let feed = Arc::clone(feed);
            let tasks = hub.tasks.clone();
            let hub = Arc::clone(hub);
            tasks.spawn(async move { own.make(&hub, feed).await });
        }
        let made = state.made.as_ref()?;
        Some(Target {
            set: Arc::clone(made.set()),
            reads: is_current.then_some(feed_has.reads),
        })
    }

    async fn make(self: Arc<Self>, hub: &Hub, feed: Arc<Feed>) {
        let former = self.lock().made.clone();
        let made = hub.prepare(move || {
            let set = feed.state().set?;
            Some(former.map_or_else(|| Unparted::new(&set), |former| former.next(&set)))
        });
        let made = made.await.flatten();
        let is_made = made.is_some();
        let mut state = self.lock();
        state.is_making = false;
        state.made = made.or(state.made.take());
        drop(state);
        if is_made {
            hub.sets_changed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
