//! A key in use at this node: its bucket, and the calls that wait for what the store says.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use kanat_message_log::quota::Key;
use tokio::sync::oneshot;

use super::bucket::{Bucket, Decision};
use super::lock;
use super::standing::{Limited, Standing};
use super::view::View;

/// A key in use.
pub(super) struct Entry {
    pub key: Key,
    /// The store is not asked for it.
    pub is_ours: bool,
    pub state: Mutex<State>,
}

pub(super) struct State {
    pub bucket: Bucket,
    pub waiting: VecDeque<oneshot::Sender<Result<Standing, Limited>>>,
    /// It stands in `asking`.
    pub queued: bool,
    /// It is not among the keys in use any more.
    pub dropped: bool,
}

impl Entry {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Answers all that wait for the key by what is here.
    pub fn decide_all(&self, view: &View) {
        let mut state = self.lock();
        let State {
            bucket, waiting, ..
        } = &mut *state;
        for reply in waiting.drain(..) {
            let answer = match bucket.decide(view) {
                Decision::Admit(standing) => Ok(standing),
                Decision::Refuse(limited) => Err(limited),
                Decision::Ask => Err(bucket.refused(view)),
            };
            let _ = reply.send(answer);
        }
    }
}
