//! Where the calls to one connector wait for their turn by its rate. They go one after the other,
//! as they came: only the first of them asks the limits that all nodes share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex as Slot};

use kanat_model::id::InstanceId;
use kanat_rate_limit::{Key, Rate};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::lock;
use crate::limit::Limiter;

pub(super) struct Line {
    limiter: Arc<Limiter>,
    key: Key,
    /// None when calls do not wait.
    rate: Slot<Option<Rate>>,
    /// Whoever has it is the first.
    first: Mutex<()>,
    length: AtomicU32,
}

/// One call in line.
struct InLine<'a>(&'a AtomicU32);

impl Line {
    pub fn new(limiter: Arc<Limiter>, instance: &str) -> Self {
        let key = InstanceId::new(instance).into();
        let length = AtomicU32::new(0);
        Self {
            limiter,
            key,
            rate: Slot::default(),
            first: Mutex::default(),
            length,
        }
    }

    /// Calls that wait already go by it too.
    pub fn set_rate(&self, per_second: Option<f64>) {
        *lock(&self.rate) = per_second.map(Rate::of);
    }

    /// Waits for the turn of one call; says whether it had to.
    pub async fn turn(&self) -> bool {
        if self.rate().is_none() {
            return false;
        }
        let _in_line = InLine::new(&self.length);
        let (_first, mut waited) = match self.first.try_lock() {
            Ok(first) => (first, false),
            Err(_) => (self.first.lock().await, true),
        };
        while let Some(rate) = self.rate() {
            let queued = self.length.load(Ordering::Relaxed).saturating_sub(1);
            let Err(again) = self.limiter.try_admit(&self.key, rate, queued).await else {
                break;
            };
            waited = true;
            sleep(again).await;
        }
        waited
    }

    fn rate(&self) -> Option<Rate> {
        *lock(&self.rate)
    }
}

impl<'a> InLine<'a> {
    fn new(length: &'a AtomicU32) -> Self {
        length.fetch_add(1, Ordering::Relaxed);
        Self(length)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
