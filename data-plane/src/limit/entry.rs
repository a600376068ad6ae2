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
    /// True while the entry is in `Limiter::pending_requests`: its request is not sent yet.
    pub is_request_pending: bool,
    /// The key is no longer in use, and the entry not in its shard.
    pub dropped: bool,
}

impl Entry {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Answers all calls that wait for the store, with the tokens that this node has. A caller that
    /// has gone takes no token.
    pub fn answer_waiting(&self, view: &ClusterView) {
        let mut state = self.lock();
        let State {
            bucket,
            awaiting_store,
            ..
        } = &mut *state;
        for reply in awaiting_store.drain(..).filter(|reply| !reply.is_closed()) {
            let _ = reply.send(bucket.decide_without_store(view));
        }
    }
}

#[cfg(test)]
mod tests {
    use kanat_model::id::InstanceId;
    use kanat_rate_limit::Limits;
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_caller_that_has_gone_takes_no_token() {
        let limits = Limits::per_second_and_day(1, 0);
        let created_at = Instant::now();
        let (gone, _) = oneshot::channel();
        let (reply, mut answer) = oneshot::channel();
        let entry = Entry {
            key: InstanceId::new("ci_1").into(),
            is_local: true,
            state: Mutex::new(State {
                bucket: Bucket::new_full(limits, created_at),
                awaiting_store: VecDeque::from([gone, reply]),
                is_request_pending: false,
                dropped: false,
            }),
        };
        entry.answer_waiting(&ClusterView::local(created_at));
        let answer = answer.try_recv().unwrap();
        assert!(answer.is_ok(), "{answer:?}");
    }
}
