//! The way to the writer: bounded in operations and in bytes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, oneshot};

use super::inbox::Inbox;
use super::operation::{Effect, Operation, Work};
use crate::Error;

/// Puts operations before the writer and waits for what came of them. The writer ends when this is
/// dropped.
pub(super) struct Queue {
    inbox: Arc<Inbox>,
    room: Arc<Semaphore>,
    bytes_limit: usize,
}

impl Queue {
    /// For `operations` at a time, and `bytes` of their bodies.
    pub fn new(inbox: Arc<Inbox>, operations: usize, bytes: usize) -> Self {
        Self {
            inbox,
            room: Arc::new(Semaphore::new(operations.max(1))),
            bytes_limit: bytes,
        }
    }

    /// For what may be refused: full at once when there is no room.
    pub async fn try_submit(&self, work: Work) -> Result<Effect, Error> {
        let queued = self.inbox.queued_bytes();
        // A single message larger than the limit passes when nothing else waits.
        if queued > 0 && queued.saturating_add(work.size_bytes()) > self.bytes_limit {
            return Err(Error::Full);
        }
        let room = Arc::clone(&self.room)
            .try_acquire_owned()
            .map_err(|error| match error {
                TryAcquireError::NoPermits => Error::Full,
                TryAcquireError::Closed => closed(),
            })?;
        self.send(room, work).await
    }

    /// For what must get through: waits for room.
    pub async fn submit(&self, work: Work) -> Result<Effect, Error> {
        let room = Arc::clone(&self.room)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        self.send(room, work).await
    }

    async fn send(&self, room: OwnedSemaphorePermit, work: Work) -> Result<Effect, Error> {
        let (reply, answer) = oneshot::channel();
        self.inbox.push(Operation {
            work,
            reply: Some((reply, room)),
        });
        answer.await.map_err(|_| closed())?.open()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

fn closed() -> Error {
    Error::Unavailable("it has been closed".to_owned())
}
