//! A key in use at this node: its bucket, and the calls that wait for the store.

use std::collections::VecDeque;

use kanat_rate_limit::{Bucket, ClusterView, Key, LimitExceeded, LimitStatus};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// A key in use.
pub(super) struct Entry {
    pub key: Key,
    /// True if this node alone limits the calls of the key, without the store.
    pub is_local: bool,
    pub state: Mutex<State>,
}

pub(super) struct State {
    pub bucket: Bucket,
    pub awaiting_store: VecDeque<oneshot::Sender<Result<LimitStatus, LimitExceeded>>>,
    /// True while the entry is in `Limiter::queued`: its request is not sent yet.
    pub is_queued: bool,
    /// The key is no longer in use, and the entry not in its shard.
    pub dropped: bool,
}

impl Entry {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Answers all calls that wait for the store, with the tokens that this node has.
    pub fn answer_waiting(&self, view: &ClusterView) {
        let mut state = self.lock();
        let State {
            bucket,
            awaiting_store,
            ..
        } = &mut *state;
        for reply in awaiting_store.drain(..) {
            let _ = reply.send(bucket.decide_without_store(view));
        }
    }
}
