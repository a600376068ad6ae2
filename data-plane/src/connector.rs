//! What each connector is given by all flows together: so many calls a second over all nodes, and
//! of each node so many at once, and none while its breaker is open. Waiting here is no attempt.
//!
//! A call waits in place for its turn, which holds up the lane that its message is in and no other.
//! An open breaker is not waited for: the message goes back into the log until the breaker lets one
//! try.

mod breaker;
mod line;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kanat_catalog::Instance;
use kanat_catalog::instance::Limits;
use kanat_telemetry::metrics;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::limit::Limiter;
pub(crate) use breaker::Verdict;
use breaker::{Answer, Breaker, Rules, Turn};
use line::Line;

/// A connector that says nothing of its breaker: one that has failed at everything for a while.
const USUAL: Rules = Rules {
    failures: 20,
    over: Duration::from_secs(10),
    pause: Duration::from_secs(5),
};

/// Bounds that nobody uses are dropped once there are this many.
const PRUNE_AT: usize = 1024;

/// The bounds of all connectors, by the id of the instance.
pub(crate) struct Bounds {
    /// Calls at once, where an instance does not say.
    concurrency: usize,
    /// Nobody waits any more.
    stopping: CancellationToken,
    limiter: Arc<Limiter>,
    instances: Mutex<HashMap<String, Arc<Bound>>>,
}

/// Those of one connector.
struct Bound {
    limits: Limits,
    places: Arc<Semaphore>,
    line: Arc<Line>,
    breaker: Arc<Mutex<Breaker>>,
}

/// The right to make one call. Dropped without a verdict, it tells nothing.
pub(crate) struct Pass {
    instance: String,
    breaker: Arc<Mutex<Breaker>>,
    tried: bool,
    judged: bool,
    _place: OwnedSemaphorePermit,
}

/// No call may be made before this time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotNow(pub Duration);

/// How many calls a connector may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outlook {
    None,
    /// The one that tries.
    One,
    Any,
}

impl Bounds {
    pub fn new(concurrency: usize, stopping: CancellationToken, limiter: Arc<Limiter>) -> Self {
        Self {
            concurrency,
            stopping,
            limiter,
            instances: Mutex::default(),
        }
    }

    /// Waits for the turn of one call.
    pub async fn enter(&self, instance: &Instance) -> Result<Pass, NotNow> {
        let bound = self.bound(instance);
        // Not even in line, while the breaker is open.
        if let Answer::Wait(wait) = lock(&bound.breaker).outlook(Instant::now()) {
            metrics().connector_waits("breaker");
            return Err(NotNow(wait));
        }
        let turn = async {
            let in_line = bound.places.available_permits() == 0;
            let place = Arc::clone(&bound.places).acquire_owned().await;
            if bound.line.turn().await || in_line {
                metrics().connector_waits("turn");
            }
            place
        };
        let place = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return Err(NotNow(Duration::ZERO)),
            place = turn => place.map_err(|_| NotNow(Duration::ZERO))?,
        };
        let tried = match lock(&bound.breaker).ask(Instant::now()) {
            Answer::Go => false,
            Answer::Try => true,
            Answer::Wait(wait) => {
                metrics().connector_waits("breaker");
                return Err(NotNow(wait));
            }
        };
        let breaker = Arc::clone(&bound.breaker);
        Ok(Pass {
            instance: instance.id().to_owned(),
            breaker,
            tried,
            judged: false,
            _place: place,
        })
    }

    /// Connectors that get no call at present but one that tries.
    pub fn open(&self) -> usize {
        lock(&self.instances)
            .values()
            .filter(|bound| !lock(&bound.breaker).is_closed())
            .count()
    }

    /// What a call would meet at the worst of these connectors.
    pub fn outlook<'i>(&self, instances: impl Iterator<Item = &'i str>) -> Outlook {
        let known = lock(&self.instances);
        let now = Instant::now();
        let each = instances.filter_map(|id| known.get(id)).map(|bound| {
            match lock(&bound.breaker).outlook(now) {
                Answer::Go => Outlook::Any,
                Answer::Try => Outlook::One,
                Answer::Wait(_) => Outlook::None,
            }
        });
        each.min().unwrap_or(Outlook::Any)
    }

    fn bound(&self, instance: &Instance) -> Arc<Bound> {
        let mut instances = lock(&self.instances);
        let limits = instance.limits();
        let former = instances.get(instance.id());
        if let Some(bound) = former.filter(|bound| bound.limits == limits) {
            return Arc::clone(bound);
        }
        // What it learned of the connector stands when its limits change.
        let breaker = former.map_or_else(
            || Arc::new(Mutex::new(Breaker::new(USUAL))),
            |f| Arc::clone(&f.breaker),
        );
        lock(&breaker).set_rules(rules(limits));
        let new_line = || Arc::new(Line::new(Arc::clone(&self.limiter), instance.id()));
        let line = former.map_or_else(new_line, |former| Arc::clone(&former.line));
        line.set_rate(limits.requests_per_second);
        if instances.len() >= PRUNE_AT && instances.len().is_power_of_two() {
            instances.retain(|_, bound| {
                Arc::strong_count(bound) > 1 || !lock(&bound.breaker).is_closed()
            });
        }
        let concurrency = limits.concurrency.map_or(self.concurrency, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
        let bound = Arc::new(Bound {
            limits,
            places: Arc::new(Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS))),
            line,
            breaker,
        });
        instances.insert(instance.id().to_owned(), Arc::clone(&bound));
        bound
    }
}

impl Pass {
    /// Says how the call went.
    pub fn judge(mut self, verdict: Verdict) {
        self.hear(verdict);
    }

    fn hear(&mut self, verdict: Verdict) {
        self.judged = true;
        match lock(&self.breaker).heard(verdict, self.tried, Instant::now()) {
            Some(Turn::Opened) => {
                metrics().breaker_turned("open");
                tracing::warn!(
                    instance.id = %self.instance,
                    "a connector fails at everything: its messages wait",
                );
            }
            Some(Turn::Closed) => {
                metrics().breaker_turned("closed");
                tracing::info!(
                    instance.id = %self.instance,
                    "a connector answers again: its messages go on",
                );
            }
            None => {}
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.judged {
            self.hear(Verdict::Unknown);
        }
    }
}

/// What an instance says of its breaker, completed.
fn rules(limits: Limits) -> Rules {
    let pause = limits
        .breaker_seconds
        .map_or(USUAL.pause, Duration::from_secs_f64);
    match limits.breaker_failures {
        Some(failures) => Rules {
            failures,
            over: Duration::ZERO,
            pause,
        },
        None => Rules { pause, ..USUAL },
    }
}

/// A panic elsewhere leaves counters that are still right.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
