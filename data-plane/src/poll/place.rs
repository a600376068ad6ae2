//! A place among the cycles that have an answer in memory. A cycle that waits for its connector
//! leaves it to another.

use tokio::sync::{Semaphore, SemaphorePermit};

pub(super) struct Place<'p> {
    places: &'p Semaphore,
    /// None while another may have it.
    permit: Option<SemaphorePermit<'p>>,
}

impl<'p> Place<'p> {
    /// Waits for one.
    pub async fn take(places: &'p Semaphore) -> Self {
        // The semaphore is never closed.
        Self {
            places,
            permit: places.acquire().await.ok(),
        }
    }

    /// Leaves it for as long as `waiting` takes, and waits for one again.
    pub async fn without<T>(&mut self, waiting: impl Future<Output = T>) -> T {
        self.permit = None;
        let waited = waiting.await;
        self.permit = self.places.acquire().await.ok();
        waited
    }
}
