//! Handle of the writer, which bounds the operations that wait. Appends are bounded in bytes too.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, oneshot};

use super::inbox::{Inbox, Operation, ReplySender};
use super::operation::{Effect, Work};
use crate::{Error, Result};

/// Handle that submits operations to the writer and waits for their effects. The [`Inbox`] holds
/// the operations. The writer ends when the handle is dropped.
pub(super) struct WriterHandle {
    inbox: Arc<Inbox>,
    permits: Arc<Semaphore>,
    max_bytes: usize,
}

impl WriterHandle {
    /// Creates a handle that lets up to `operations` wait, and takes appends up to `bytes`.
    pub fn new(inbox: Arc<Inbox>, operations: usize, bytes: usize) -> Self {
        Self {
            inbox,
            permits: Arc::new(Semaphore::new(operations.max(1))),
            max_bytes: bytes,
        }
    }

    /// Submits an operation, or fails as full at once when there is no room.
    pub async fn try_submit(&self, work: Work) -> Result<Effect> {
        let unanswered = self.inbox.unanswered_bytes();
        // A single message larger than the limit passes when nothing else waits.
        if unanswered > 0 && unanswered.saturating_add(work.size_bytes()) > self.max_bytes {
            return Err(Error::Full);
        }
        let permit =
            Arc::clone(&self.permits)
                .try_acquire_owned()
                .map_err(|error| match error {
                    TryAcquireError::NoPermits => Error::Full,
                    TryAcquireError::Closed => closed(),
                })?;
        self.send(permit, work).await
    }

    /// Submits an operation once there is room.
    pub async fn submit(&self, work: impl Into<Work>) -> Result<Effect> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        self.send(permit, work.into()).await
    }

    async fn send(&self, permit: OwnedSemaphorePermit, work: Work) -> Result<Effect> {
        let (sender, reply) = oneshot::channel();
        self.inbox.push(Operation {
            work,
            reply: Some(ReplySender::new(sender, permit)),
        });
        reply.await.map_err(|_| closed())?.into_result()
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

fn closed() -> Error {
    Error::Unavailable("it has been closed".to_owned())
}
