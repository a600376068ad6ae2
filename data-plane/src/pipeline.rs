//! Life of an accepted message: into the log, through the lane of its target, and its outcome back
//! into the log.
//!
//! A message that finds a slot in its lane runs from memory right after the append; every other one
//! waits in the log until [`claim`] takes it up. Bounds: the lanes' in messages and bytes; nothing
//! here queues without one.

mod accept;
mod claim;
mod job;
mod lane;
mod lease;
mod log_availability;
mod run;
mod tally;
mod turns;
mod write_behind;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderValue;
use kanat_message_log::{Content, Error, Message, MessageLog, Tenant, TraceRecord};
use kanat_model::id::{MessageId, NodeId};
use kanat_net::budget::Budget;
use kanat_net::outbound;
use kanat_script::Pool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backlog::{self, Backlog};
use crate::connector::{Capacity, Connectors};
use crate::limit::Limiter;
use crate::plans::{CompiledFlow, Plans};
pub(crate) use accept::{Acceptance, Arrival, CallError, StoreError, StoreOutcome};
use job::Job;
pub(crate) use job::Reply;
use lane::{Lanes, Limits};
pub(crate) use lease::Leases;
use log_availability::LogAvailability;
pub(crate) use log_availability::unavailability;
use turns::Turns;
pub(crate) use turns::{Turn, TurnLoss};
use write_behind::WriteBehind;

/// Time that operations on the log get to end after a drain.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Bounds of the pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub node_id: NodeId,
    pub lease: Duration,
    /// Concurrent requests to one target.
    pub in_flight: usize,
    /// Messages in memory that wait for one target.
    pub queued: usize,
    /// Bytes of all messages in memory.
    pub memory: usize,
    pub largest: usize,
    pub backlog: backlog::Limits,
    /// Version of the build, for `User-Agent`.
    pub build: String,
    /// Limits of adapters.
    pub adapters: kanat_script::Options,
}

pub(crate) struct Pipeline {
    log: Arc<dyn MessageLog>,
    plans: Plans,
    outbound: outbound::Client,
    lanes: Lanes<Box<Job>>,
    connectors: Arc<Connectors>,
    adapters: Pool,
    /// Bytes of all messages in memory.
    memory: Arc<Budget>,
    backlog: Arc<Backlog>,
    leases: Arc<Leases>,
    agent: HeaderValue,
    /// Records of calls that ran in memory and are not in the log yet.
    write_behind: WriteBehind,
    /// Calls that wait for their turn.
    turns: Turns,
    log_availability: LogAvailability,
    /// Messages that are due in flows of which this node cannot run some versions yet.
    waiting_for_plans: AtomicU64,
    /// Messages that are being stored or run.
    in_flight: AtomicUsize,
    /// Woken when one of them has ended.
    ended: Notify,
    /// Largest size of a message in memory, in bytes.
    largest: usize,
    tasks: TaskTracker,
    /// Cancelled when no more work is started.
    draining: CancellationToken,
    /// Cancelled when all work stops.
    stopped: CancellationToken,
}

impl Pipeline {
    pub fn new(
        options: &Options,
        log: Arc<dyn MessageLog>,
        plans: Plans,
        outbound: outbound::Client,
        limiter: Arc<Limiter>,
    ) -> Arc<Self> {
        let limits = Limits {
            in_flight: options.in_flight,
            queued: options.queued,
        };
        let agent = format!("kanat/{}", options.build);
        let memory = Budget::new(options.memory);
        let draining = CancellationToken::new();
        Arc::new(Self {
            log,
            plans,
            outbound,
            lanes: Lanes::new(limits, Arc::clone(&memory)),
            adapters: Pool::new(options.adapters.clone()),
            connectors: Arc::new(Connectors::new(
                options.in_flight,
                draining.clone(),
                limiter,
            )),
            memory,
            backlog: Backlog::new(options.backlog),
            leases: Arc::new(Leases::new(options.node_id.clone(), options.lease)),
            agent: HeaderValue::from_str(&agent).unwrap_or(HeaderValue::from_static("kanat")),
            write_behind: WriteBehind::new(),
            turns: Turns::default(),
            log_availability: LogAvailability::default(),
            waiting_for_plans: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            ended: Notify::new(),
            largest: options.largest.min(options.memory),
            tasks: TaskTracker::new(),
            draining,
            stopped: CancellationToken::new(),
        })
    }

    /// Starts to keep the lease and to claim messages that wait in the log.
    pub fn start(self: &Arc<Self>) {
        let keeper = Arc::clone(self);
        self.tasks.spawn(async move {
            keeper
                .leases
                .keep(keeper.log.as_ref(), &keeper.stopped)
                .await
        });
        let writer = Arc::clone(self);
        self.tasks.spawn(async move {
            let keeping = writer.keep_versions();
            writer.stopped.run_until_cancelled(keeping).await
        });
        let recorder = Arc::clone(self);
        self.tasks
            .spawn(async move { recorder.run_write_behind().await });
        let counter = Arc::clone(self);
        self.tasks.spawn(async move {
            counter
                .backlog
                .follow(counter.log.as_ref(), &counter.stopped)
                .await
        });
        let claimer = Arc::clone(self);
        self.tasks
            .spawn(async move { claimer.claim_until_drained().await });
    }

    /// Returns whether messages are accepted and run.
    pub fn is_ready(&self) -> bool {
        !self.is_draining() && self.leases.current().is_some()
    }

    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Returns the number of messages that this node processes now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Returns the limits of the connectors, for other callers of connectors.
    pub fn connectors(&self) -> Arc<Connectors> {
        Arc::clone(&self.connectors)
    }

    /// Returns the leases of the node, for everything else that it holds in the log.
    pub fn leases(&self) -> Arc<Leases> {
        Arc::clone(&self.leases)
    }

    /// Returns the backlog of the log, for everything that takes messages in.
    pub fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    /// Returns the number of connectors whose breaker is not closed.
    pub fn breakers_open(&self) -> usize {
        self.connectors.open_breakers()
    }

    /// Returns the number of messages that are due in flows of which this node cannot run some
    /// versions with its current plans.
    pub fn waiting_for_plans(&self) -> u64 {
        self.waiting_for_plans.load(Ordering::Relaxed)
    }

    /// Returns the memory usage of the lanes.
    pub fn usage(&self) -> lane::Usage {
        self.lanes.usage()
    }

    pub async fn ping(&self) -> Result<(), Error> {
        self.log.ping().await
    }

    /// Checks that the log takes messages.
    ///
    /// # Errors
    /// The reason why it does not.
    pub async fn takes_messages(&self) -> Result<(), String> {
        self.log_availability.check(self.log.as_ref()).await
    }

    /// Returns a message as it was received.
    pub async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error> {
        self.log.content(tenant, id).await
    }

    /// Returns the current state of a message, with its trace.
    pub async fn message(
        &self,
        tenant: &Tenant,
        id: &MessageId,
    ) -> Result<(Option<Message>, Vec<TraceRecord>), Error> {
        Ok((
            self.log.get(tenant, id).await?,
            self.log.trace(tenant, id).await?,
        ))
    }

    /// Starts no more work, waits until `deadline` for messages in flight, and gives all others
    /// back.
    pub async fn drain(&self, deadline: Duration) {
        self.draining.cancel();
        // Queued jobs do not start any more; the end of the lease gives them back.
        drop(self.lanes.clear());
        if tokio::time::timeout(deadline, self.quiet()).await.is_err() {
            tracing::warn!(
                messages = self.in_flight(),
                "the time to drain is over: messages in flight are handed back"
            );
        }
        self.stopped.cancel();
        self.leases.hand_back(self.log.as_ref()).await;
        self.tasks.close();
        if tokio::time::timeout(STOP_TIMEOUT, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("the message log does not answer: stopping without it");
        }
    }

    /// Writes the versions that run into the log each time that it went back to an earlier copy,
    /// which may lack them. Messages are accepted under them.
    async fn keep_versions(&self) {
        loop {
            self.leases.past_changed().await;
            while let Err(error) = self.plans.save_running().await {
                tracing::warn!(%error, "versions of flows cannot be written into the log yet");
                tokio::time::sleep(lease::RETRY).await;
            }
        }
    }

    async fn quiet(&self) {
        loop {
            let ended = self.ended.notified();
            if self.in_flight() == 0 {
                return;
            }
            ended.await;
        }
    }

    fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }
}

/// Counts one message until it is dropped.
struct InFlight(Arc<Pipeline>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.0.ended.notify_waiters();
    }
}

/// Returns the capacity for messages of a flow, by the connectors that it calls.
fn capacity(connectors: &Connectors, flow: &CompiledFlow) -> Capacity {
    let target = flow
        .plan()
        .target
        .iter()
        .map(|target| target.instance.as_str());
    connectors.capacity(target.chain(flow.plan().steps.iter().map(|step| step.instance.as_str())))
}

/// Returns the lane of a flow's messages: the lane of the target's connector instance, or a lane of
/// the flow if it has steps or adapters, because one that hangs must not delay messages of other
/// flows to the target.
fn lane_of(flow: &CompiledFlow) -> &str {
    match &flow.plan().target {
        Some(target) if flow.plan().steps.is_empty() && !flow.program.uses_adapters() => {
            &target.instance
        }
        Some(_) | None => flow.id.as_str(),
    }
}
