//! How long a call may still run: counted in time on a core, so that a busy machine does not decide
//! what an adapter comes to.

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The end of the current call's time.
#[derive(Default)]
pub(crate) struct Clock {
    end: Cell<Duration>,
    /// The engine was asked to stop.
    over: Cell<bool>,
}

impl Clock {
    /// Begins a call that may use so much.
    pub fn start(&self, allowed: Duration) {
        self.end.set(used().saturating_add(allowed));
        self.over.set(false);
    }

    /// Returns whether the engine has to stop; the engine asks every few thousand operations.
    pub fn is_over(&self) -> bool {
        if used() >= self.end.get() {
            self.over.set(true);
        }
        self.over.get()
    }

    /// Returns whether the call was stopped.
    pub fn was_stopped(&self) -> bool {
        self.over.get()
    }
}

/// Time that this thread has had on a core.
pub(crate) fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
