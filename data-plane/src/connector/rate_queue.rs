//! Queue of the calls to one connector that wait for a token of its rate, first in, first out. Only
//! the first call asks the rate limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kanat_model::id::InstanceId;
use kanat_rate_limit::{Key, Rate};
use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::limit::Limiter;

pub(super) struct RateQueue {
    limiter: Arc<Limiter>,
    key: Key,
    /// `None` when calls do not wait.
    rate: SyncMutex<Option<Rate>>,
    /// Locked by the first call.
    first: Mutex<()>,
    length: AtomicU32,
}

/// Place of one call in the queue, while it lives.
struct QueueSlot<'a>(&'a AtomicU32);

impl RateQueue {
    pub fn new(limiter: Arc<Limiter>, instance: &str) -> Self {
        let key = InstanceId::new(instance).into();
        let length = AtomicU32::new(0);
        Self {
            limiter,
            key,
            rate: SyncMutex::default(),
            first: Mutex::default(),
            length,
        }
    }

    /// Sets the rate, also for the calls that wait already.
    pub fn set_rate(&self, per_second: Option<f64>) {
        *self.rate.lock() = per_second.map(Rate::from_calls_per_second);
    }

    /// Waits for the turn of one call, and returns whether it had to wait.
    pub async fn wait_turn(&self) -> bool {
        if self.rate().is_none() {
            return false;
        }
        let _slot = QueueSlot::new(&self.length);
        let (_first, mut waited) = match self.first.try_lock() {
            Ok(first) => (first, false),
            Err(_) => (self.first.lock().await, true),
        };
        while let Some(rate) = self.rate() {
            let queued_calls = self.length.load(Ordering::Relaxed).saturating_sub(1);
            let Err(wait) = self
                .limiter
                .check_queued(&self.key, rate, queued_calls)
                .await
            else {
                break;
            };
            waited = true;
            sleep(wait).await;
        }
        waited
    }

    fn rate(&self) -> Option<Rate> {
        *self.rate.lock()
    }
}

impl<'a> QueueSlot<'a> {
    fn new(length: &'a AtomicU32) -> Self {
        length.fetch_add(1, Ordering::Relaxed);
        Self(length)
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
