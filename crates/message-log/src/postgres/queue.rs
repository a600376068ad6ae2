//! The queues of the writers, bounded in operations. For appends they are bounded in bytes too.
//! Operations that lock keys have a queue and a writer of their own, so that the order of appends
//! is kept for every key, and no other operation waits for a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::operation::{Effect, Operation, Work};
use crate::{Error, Result};

/// Submits operations to the writers and waits for their effects.
#[derive(Clone)]
pub(super) struct Queue {
    keyed: mpsc::Sender<Operation>,
    free: mpsc::Sender<Operation>,
    bytes: Arc<AtomicUsize>,
    bytes_limit: usize,
}

/// Ends of the queues that the writers receive from.
pub(super) struct QueueReceivers {
    pub keyed: mpsc::Receiver<Operation>,
    pub free: mpsc::Receiver<Operation>,
    /// Bytes that are queued. The writer that answers an operation subtracts its bytes.
    pub bytes: Arc<AtomicUsize>,
}

impl Queue {
    pub fn new(operations: usize, bytes_limit: usize) -> (Self, QueueReceivers) {
        let (keyed, keyed_end) = mpsc::channel(operations.max(1));
        let (free, free_end) = mpsc::channel(operations.max(1));
        let bytes = Arc::new(AtomicUsize::new(0));
        let receivers = QueueReceivers {
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
            receivers,
        )
    }

    /// Submits an operation that may be refused: [`Error::Full`] at once when the queue is full.
    pub async fn try_submit(&self, work: Work) -> Result<Effect> {
        let size = work.size_bytes();
        let queued = self.bytes.load(Ordering::Relaxed);
        // A single message larger than the limit passes when nothing else waits.
        if queued > 0 && queued.saturating_add(size) > self.bytes_limit {
            return Err(Error::Full);
        }
        let permit = self
            .sender(&work)
            .try_reserve()
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(()) => Error::Full,
                mpsc::error::TrySendError::Closed(()) => closed(),
            })?;
        self.send(permit, work, size).await
    }

    /// Submits an operation that must not be refused: waits for room.
    pub async fn submit(&self, work: Work) -> Result<Effect> {
        let size = work.size_bytes();
        let permit = self.sender(&work).reserve().await.map_err(|_| closed())?;
        self.send(permit, work, size).await
    }

    fn sender(&self, work: &Work) -> &mpsc::Sender<Operation> {
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
    ) -> Result<Effect> {
        let (reply, answer) = oneshot::channel();
        self.bytes.fetch_add(size, Ordering::Relaxed);
        permit.send(Operation { work, reply });
        answer.await.map_err(|_| closed())?.into_result()
    }
}

pub(super) fn closed() -> Error {
    Error::Unavailable("it has been closed".to_owned())
}
