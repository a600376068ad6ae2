//! The ways to the writers: bounded in operations and in bytes. What locks keys has a way and a
//! writer of its own, so that the order of appends is kept for every key, and nothing else waits
//! for a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::operation::{Effect, Operation, Work};
use crate::Error;

/// Puts operations before the writers and waits for what came of them.
#[derive(Clone)]
pub(super) struct Queue {
    keyed: mpsc::Sender<Operation>,
    free: mpsc::Sender<Operation>,
    bytes: Arc<AtomicUsize>,
    bytes_limit: usize,
}

/// Where the writers find what was queued.
pub(super) struct Ends {
    pub keyed: mpsc::Receiver<Operation>,
    pub free: mpsc::Receiver<Operation>,
    /// What is queued, in bytes; whoever answers takes off.
    pub bytes: Arc<AtomicUsize>,
}

impl Queue {
    pub fn new(operations: usize, bytes_limit: usize) -> (Self, Ends) {
        let (keyed, keyed_end) = mpsc::channel(operations.max(1));
        let (free, free_end) = mpsc::channel(operations.max(1));
        let bytes = Arc::new(AtomicUsize::new(0));
        let ends = Ends {
            keyed: keyed_end,
            free: free_end,
            bytes: Arc::clone(&bytes),
        };
        (
            Self {
                keyed,
                free,
                bytes,
                bytes_limit,
            },
            ends,
        )
    }

    /// For what may be refused: full at once when there is no room.
    pub async fn try_submit(&self, work: Work) -> Result<Effect, Error> {
        let size = work.size_bytes();
        let queued = self.bytes.load(Ordering::Relaxed);
        // A single message larger than the limit passes when nothing else waits.
        if queued > 0 && queued.saturating_add(size) > self.bytes_limit {
            return Err(Error::Full);
        }
        let permit = self.way(&work).try_reserve().map_err(|error| match error {
            mpsc::error::TrySendError::Full(()) => Error::Full,
            mpsc::error::TrySendError::Closed(()) => closed(),
        })?;
        self.send(permit, work, size).await
    }

    /// For what must get through: waits for room.
    pub async fn submit(&self, work: Work) -> Result<Effect, Error> {
        let size = work.size_bytes();
        let permit = self.way(&work).reserve().await.map_err(|_| closed())?;
        self.send(permit, work, size).await
    }

    fn way(&self, work: &Work) -> &mpsc::Sender<Operation> {
        if work.keys() > 0 {
            &self.keyed
        } else {
            &self.free
        }
    }

    async fn send(
        &self,
        permit: mpsc::Permit<'_, Operation>,
        work: Work,
        size: usize,
    ) -> Result<Effect, Error> {
        let (reply, answer) = oneshot::channel();
        self.bytes.fetch_add(size, Ordering::Relaxed);
        permit.send(Operation { work, reply });
        answer.await.map_err(|_| closed())?.open()
    }
}

/// An answer of another kind than the question asks for, which the writers never give.
pub(super) fn unexpected(effect: &Effect) -> Error {
    Error::Other(format!("the writer answered {effect:?}"))
}

pub(super) fn closed() -> Error {
    Error::Unavailable("it has been closed".to_owned())
}
