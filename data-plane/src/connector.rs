//! Limits on the calls to each connector, shared by all flows: a rate over all nodes, a number of
//! concurrent calls per node, and a circuit breaker. Waiting here does not count as an attempt.
//!
//! A call waits in place for its turn, which holds up the lane of its message and no other. No call
//! waits for an open breaker: the message goes back into the log until the breaker allows a probe.

mod breaker;
mod rate_queue;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kanat_catalog::Instance;
use kanat_catalog::instance::Limits;
use kanat_telemetry::metrics;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::limit::Limiter;
pub(crate) use breaker::Outcome;
use breaker::{Admission, Breaker, CallKind, Rules, Transition};
use rate_queue::RateQueue;

/// Default settings of the circuit breakers.
const DEFAULT_RULES: Rules = Rules {
    failures: 20,
    min_span: Duration::from_secs(10),
    open_for: Duration::from_secs(5),
};

/// Number of connectors from which unused ones are dropped.
const PRUNE_THRESHOLD: usize = 1024;

/// State of all connectors that were called, by the id of the instance.
pub(crate) struct Connectors {
    /// Concurrent calls of an instance that sets no limit.
    concurrency: usize,
    /// Cancelled when calls no longer wait.
    stopping: CancellationToken,
    limiter: Arc<Limiter>,
    instances: Mutex<HashMap<String, Arc<Connector>>>,
}

/// Limits and state of one connector.
struct Connector {
    limits: Limits,
    permits: Arc<Semaphore>,
    queue: Arc<RateQueue>,
    breaker: Arc<Mutex<Breaker>>,
}

/// Permit for one call. Dropped without a result, it records [`Outcome::Unknown`].
pub(crate) struct CallPermit {
    instance: String,
    breaker: Arc<Mutex<Breaker>>,
    kind: CallKind,
    is_recorded: bool,
    _permit: OwnedSemaphorePermit,
}

/// The connector takes no call before this time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable(pub Duration);

/// Number of calls that a connector can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capacity {
    None,
    /// One call, which probes the connector.
    Probe,
    Full,
}

impl Connectors {
    pub fn new(concurrency: usize, stopping: CancellationToken, limiter: Arc<Limiter>) -> Self {
        Self {
            concurrency,
            stopping,
            limiter,
            instances: Mutex::default(),
        }
    }

    /// Waits for the turn of one call.
    ///
    /// # Errors
    /// The breaker is open, or the node is draining.
    pub async fn acquire(&self, instance: &Instance) -> Result<CallPermit, Unavailable> {
        let connector = self.connector(instance);
        // Checked before the wait for a turn too.
        if let Admission::Wait(wait) = connector.breaker.lock().peek(Instant::now()) {
            metrics().connector_waits.count("breaker");
            return Err(Unavailable(wait));
        }
        let turn = async {
            let is_queued = connector.permits.available_permits() == 0;
            let permit = Arc::clone(&connector.permits).acquire_owned().await;
            if connector.queue.wait_turn().await || is_queued {
                metrics().connector_waits.count("turn");
            }
            permit
        };
        let permit = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return Err(Unavailable(Duration::ZERO)),
            permit = turn => permit.map_err(|_| Unavailable(Duration::ZERO))?,
        };
        let kind = match connector.breaker.lock().try_acquire(Instant::now()) {
            Admission::Allow => CallKind::Regular,
            Admission::Probe => CallKind::Probe,
            Admission::Wait(wait) => {
                metrics().connector_waits.count("breaker");
                return Err(Unavailable(wait));
            }
        };
        Ok(CallPermit {
            instance: instance.id().to_owned(),
            breaker: Arc::clone(&connector.breaker),
            kind,
            is_recorded: false,
            _permit: permit,
        })
    }

    /// Returns the number of connectors whose breaker is not closed.
    pub fn open_breakers(&self) -> usize {
        self.instances
            .lock()
            .values()
            .filter(|connector| !connector.breaker.lock().is_closed())
            .count()
    }

    /// Returns the least capacity among these connectors.
    pub fn capacity<'i>(&self, instances: impl Iterator<Item = &'i str>) -> Capacity {
        let known = self.instances.lock();
        let now = Instant::now();
        let each = instances.filter_map(|id| known.get(id)).map(|connector| {
            match connector.breaker.lock().peek(now) {
                Admission::Allow => Capacity::Full,
                Admission::Probe => Capacity::Probe,
                Admission::Wait(_) => Capacity::None,
            }
        });
        each.min().unwrap_or(Capacity::Full)
    }

    fn connector(&self, instance: &Instance) -> Arc<Connector> {
        let mut instances = self.instances.lock();
        let limits = instance.limits();
        let former = instances.get(instance.id());
        if let Some(connector) = former.filter(|connector| connector.limits == limits) {
            return Arc::clone(connector);
        }
        // The breaker keeps its state when the limits change.
        let breaker = former.map_or_else(
            || Arc::new(Mutex::new(Breaker::new(DEFAULT_RULES))),
            |former| Arc::clone(&former.breaker),
        );
        breaker.lock().set_rules(rules(limits));
        let new_queue = || Arc::new(RateQueue::new(Arc::clone(&self.limiter), instance.id()));
        let queue = former.map_or_else(new_queue, |former| Arc::clone(&former.queue));
        queue.set_rate(limits.requests_per_second);
        if instances.len() >= PRUNE_THRESHOLD && instances.len().is_power_of_two() {
            instances.retain(|_, connector| {
                Arc::strong_count(connector) > 1 || !connector.breaker.lock().is_closed()
            });
        }
        let concurrency = limits.concurrency.map_or(self.concurrency, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let connector = Arc::new(Connector {
            limits,
            permits: Arc::new(Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS))),
            queue,
            breaker,
        });
        instances.insert(instance.id().to_owned(), Arc::clone(&connector));
        connector
    }
}

impl CallPermit {
    /// Records the result of the call. Returns the time for which calls pause, if it is a failure
    /// and the breaker is open now.
    pub fn record(mut self, outcome: Outcome) -> Option<Duration> {
        self.record_once(outcome);
        let pause = self.breaker.lock().pause(Instant::now());
        pause.filter(|_| outcome == Outcome::Failure)
    }

    fn record_once(&mut self, outcome: Outcome) {
        self.is_recorded = true;
        let transition = self
            .breaker
            .lock()
            .record(outcome, self.kind, Instant::now());
        match transition {
            Some(Transition::Opened) => {
                metrics().breaker_transitions.count("open");
                tracing::warn!(
                    instance.id = %self.instance,
                    "circuit breaker opened: messages to the connector wait",
                );
            }
            Some(Transition::Closed) => {
                metrics().breaker_transitions.count("closed");
                tracing::info!(
                    instance.id = %self.instance,
                    "circuit breaker closed: messages to the connector continue",
                );
            }
            None => {}
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if !self.is_recorded {
            self.record_once(Outcome::Unknown);
        }
    }
}

/// Returns the breaker settings of an instance, completed by the defaults.
fn rules(limits: Limits) -> Rules {
    let open_for = limits
        .breaker_seconds
        .map_or(DEFAULT_RULES.open_for, Duration::from_secs_f64);
    match limits.breaker_failures {
        Some(failures) => Rules {
            failures,
            min_span: Duration::ZERO,
            open_for,
        },
        None => Rules {
            open_for,
            ..DEFAULT_RULES
        },
    }
}
