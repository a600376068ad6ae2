//! From an accepted message to its end: into the log, through its target's lane, and its outcome
//! back into the log.
//!
//! A message that finds a slot in its lane runs from memory right after the append; every other one
//! waits in the log until [`claim`] takes it up. Bounds: the lanes' in messages and bytes; nothing
//! here queues without one.

mod accept;
mod behind;
mod claim;
mod job;
mod lane;
mod lease;
mod run;
mod taking;
mod tally;
mod turns;

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
use crate::connector::{Bounds, Outlook};
use crate::limit::Limiter;
use crate::plans::{Flow, Plans};
pub(crate) use accept::{Accepted, Arrival, Begun, NotBegun, NotStored};
use behind::Behind;
use job::Job;
pub(crate) use job::Reply;
use lane::{Lanes, Limits};
use lease::Leases;
use taking::Taking;
pub(crate) use taking::told;
use turns::Turns;
pub(crate) use turns::{Lost, Turn};

/// What still talks to the log after a drain is given so long.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Bounds of the pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub node_id: NodeId,
    pub lease: Duration,
    /// Requests that one target is sent at once.
    pub in_flight: usize,
    /// Messages in memory behind those.
    pub queued: usize,
    /// Bytes of all messages in memory, and of the largest one.
    pub memory: usize,
    pub largest: usize,
    pub backlog: backlog::Limits,
    /// Version of the build, for `User-Agent`.
    pub build: String,
    /// How adapters are run.
    pub adapters: kanat_script::Options,
}

pub(crate) struct Pipeline {
    log: Arc<dyn MessageLog>,
    plans: Plans,
    outbound: outbound::Client,
    lanes: Lanes<Box<Job>>,
    bounds: Arc<Bounds>,
    adapters: Pool,
    /// Bytes of all messages in memory.
    memory: Arc<Budget>,
    backlog: Arc<Backlog>,
    leases: Leases,
    agent: HeaderValue,
    /// What was answered from memory and is not in the log yet.
    behind: Behind,
    /// Calls that wait for their turn.
    turns: Turns,
    taking: Taking,
    /// Messages that are due in flows of which this node cannot run some versions yet.
    waiting_for_plans: AtomicU64,
    /// Messages that are being stored or run.
    in_flight: AtomicUsize,
    /// One of them has ended.
    ended: Notify,
    /// Bytes that a message may take at most.
    largest: usize,
    tasks: TaskTracker,
    /// No more work is begun.
    draining: CancellationToken,
    /// Nothing goes on.
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
            bounds: Arc::new(Bounds::new(options.in_flight, draining.clone(), limiter)),
            memory,
            backlog: Backlog::new(options.backlog),
            leases: Leases::new(options.node_id.clone(), options.lease),
            agent: HeaderValue::from_str(&agent).unwrap_or(HeaderValue::from_static("kanat")),
            behind: Behind::new(),
            turns: Turns::default(),
            taking: Taking::default(),
            waiting_for_plans: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            ended: Notify::new(),
            largest: options.largest.min(options.memory),
            tasks: TaskTracker::new(),
            draining,
            stopped: CancellationToken::new(),
        })
    }

    /// Begins to keep the lease and to claim what waits in the log.
    pub fn start(self: &Arc<Self>) {
        let keeper = Arc::clone(self);
        self.tasks.spawn(async move {
            keeper
                .leases
                .keep(keeper.log.as_ref(), &keeper.stopped)
                .await
        });
        let recorder = Arc::clone(self);
        self.tasks
            .spawn(async move { recorder.write_behind().await });
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

    /// Whether messages are taken and run.
    pub fn is_ready(&self) -> bool {
        !self.is_draining() && self.leases.current().is_some()
    }

    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Messages that this node works on now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// What connectors are given, for whoever else calls them.
    pub fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.bounds)
    }

    /// Returns the backlog of the log, for everything that takes messages in.
    pub fn backlog(&self) -> Arc<Backlog> {
        Arc::clone(&self.backlog)
    }

    /// Connectors whose breaker is open.
    pub fn breakers_open(&self) -> usize {
        self.bounds.open()
    }

    /// Messages that are due in flows of which this node cannot run some versions with the plans
    /// that it has.
    pub fn waiting_for_plans(&self) -> u64 {
        self.waiting_for_plans.load(Ordering::Relaxed)
    }

    /// What the lanes hold in memory.
    pub fn usage(&self) -> lane::Usage {
        self.lanes.usage()
    }

    pub async fn ping(&self) -> Result<(), Error> {
        self.log.ping().await
    }

    /// Errors with the reason while the log does not take messages.
    pub async fn takes_messages(&self) -> Result<(), String> {
        self.taking.check(self.log.as_ref()).await
    }

    /// A message as it came in.
    pub async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error> {
        self.log.content(tenant, id).await
    }

    /// A message as it stands, with its trace.
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

    /// Begins no more work, lets what is in flight end until `deadline`, and gives everything else
    /// back.
    pub async fn drain(&self, deadline: Duration) {
        self.draining.cancel();
        // What has not begun is not begun here any more; the end of the lease gives it back.
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

/// How many messages of a flow may be run, by the connectors that it calls.
fn outlook(bounds: &Bounds, flow: &Flow) -> Outlook {
    let target = flow
        .plan()
        .target
        .iter()
        .map(|target| target.instance.as_str());
    bounds.outlook(target.chain(flow.plan().steps.iter().map(|step| step.instance.as_str())))
}

/// The lane that a flow's messages take: that of its target's connector instance; one of its own
/// when the flow has steps or adapters, because one that hangs must not hold up what others send to
/// the same target.
fn lane_of(flow: &Flow) -> &str {
    match &flow.plan().target {
        Some(target) if flow.plan().steps.is_empty() && !flow.program.uses_adapters() => {
            &target.instance
        }
        Some(_) | None => flow.id.as_str(),
    }
}
