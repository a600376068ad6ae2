//! A node of the data plane: wiring of its parts, start and drain.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Sealer;
use kanat_message_log::{MessageLog, QuotaStore};
use kanat_model::id::{BootId, NodeId};
use kanat_model::saturated;
use kanat_net::jwks::TokenVerifier;
use kanat_net::outbound;
use kanat_proto::node::v1::Load;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::backlog;
use crate::context::NodeContext;
use crate::limit::Limiter;
use crate::monitor::Monitor;
use crate::pipeline::{self, Pipeline};
use crate::plans::{self, ControlPlanes, LastGoodHandle, Plans};
use crate::poll::Poller;
use crate::refusal_log::RefusalLog;
use crate::service::Service;

/// Concurrent requests to one target, and messages in memory that wait for it.
const LANE: (usize, usize) = (64, 1024);

const READY_POLL: Duration = Duration::from_millis(2);

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct Options {
    pub node_id: NodeId,
    /// Directory of the last plans, and of the records of long pages of polls.
    pub data_dir: PathBuf,
    /// Address that operators reach the node at; may be empty.
    pub address: String,
    /// Ids or names of the environments to serve; empty for all.
    pub environments: Vec<String>,
    /// Bytes of a request's body, and of what it decompresses to.
    pub body_limit: usize,
    /// Bytes that messages on their way to a target may take in memory, and as many again for
    /// requests being read.
    pub memory: usize,
    /// Bounds of the backlog of the whole log.
    pub backlog: backlog::Limits,
    /// Time after which other nodes may process the messages of a dead node.
    pub lease: Duration,
    /// Size of the longest answer to a poll, in bytes.
    pub poll_answer: usize,
    /// Version of the build.
    pub build: String,
    /// Limits of adapters.
    pub adapters: kanat_script::Options,
}

impl Options {
    /// Returns the default settings: bodies of 1 MiB, 256 MiB of memory, a backlog of 1 GiB, a
    /// lease of 30 s.
    pub fn new(node_id: NodeId, data_dir: PathBuf) -> Self {
        Self {
            node_id,
            data_dir,
            address: String::new(),
            environments: Vec::new(),
            body_limit: 1 << 20,
            memory: 256 << 20,
            backlog: backlog::Limits {
                bytes: 1 << 30,
                age: None,
            },
            lease: Duration::from_secs(30),
            poll_answer: 16 << 20,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            adapters: kanat_script::Options::default(),
        }
    }
}

/// A running node. Dropped without a [`drain`](Self::drain), its messages wait in the log for their
/// lease to run out.
pub struct DataPlane {
    shared: Arc<NodeContext>,
    drain_requests: watch::Receiver<Option<Duration>>,
    last_good_handle: LastGoodHandle,
    /// Ends the polls; the plans are still followed.
    stop_polls: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl DataPlane {
    /// Starts with the last plans, if there are any, and follows the control plane.
    pub async fn start(
        options: Options,
        log: Arc<dyn MessageLog>,
        control: ControlPlanes,
        outbound: outbound::Client,
        sealer: Arc<Sealer>,
    ) -> Self {
        let plans = Plans::new(log.clone());
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let tokens = TokenVerifier::new(
            outbound.clone(),
            tasks.clone(),
            stop.clone(),
            crate::oauth2::MAX_KEY_AGE,
        );
        let polled = outbound.with_max_response(options.poll_answer);
        let limiter = Arc::new(Limiter::new(
            Arc::clone(&log) as Arc<dyn QuotaStore>,
            options.node_id.clone(),
        ));
        let pipeline_options = pipeline_options(&options);
        let own_log = Arc::clone(&log);
        let pipeline = Pipeline::new(
            &pipeline_options,
            own_log,
            plans.clone(),
            outbound,
            Arc::clone(&limiter),
        );
        let poller = Poller {
            log: Arc::clone(&log),
            plans: plans.clone(),
            outbound: polled,
            connectors: pipeline.connectors(),
            backlog: pipeline.backlog(),
            leases: pipeline.leases(),
            lease: options.lease,
            spill: options.data_dir.clone(),
            build: options.build.clone(),
        };
        let load = load_reader(plans.clone(), Arc::clone(&pipeline));
        let client_options = client_options(&options);
        let client = plans::PlanStreamClient::start(
            client_options,
            plans.clone(),
            log,
            sealer,
            control,
            load,
        )
        .await;
        let drain_requests = client.drain_requests();
        let last_good_handle = client.last_good_handle();
        let stop_polls = CancellationToken::new();
        tasks.spawn(client.run(stop.clone()));
        tasks.spawn(plans.clone().evict_idle(stop.clone()));
        tasks.spawn(poller.run(stop_polls.clone()));
        tasks.spawn(Arc::clone(&limiter).run(stop.clone()));
        pipeline.start();
        let admission = Admission::new(options.body_limit, options.memory);
        let shared = NodeContext {
            plans,
            pipeline,
            admission,
            refusals: RefusalLog::default(),
            limiter,
            tokens,
            leaving: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
            drain_requests,
            last_good_handle,
            stop_polls,
            stop,
            tasks,
        }
    }

    /// Returns the service for all paths of the data plane.
    pub fn service(&self) -> Service {
        Service::new(Arc::clone(&self.shared))
    }

    /// Returns a handle for probes and metrics.
    pub fn monitor(&self) -> Monitor {
        Monitor::new(Arc::clone(&self.shared))
    }

    /// Returns a handle that seals the files of the last good plans again.
    pub fn last_good_handle(&self) -> LastGoodHandle {
        self.last_good_handle.clone()
    }

    /// Returns whether messages are accepted and run: plans are loaded, and the log has granted a
    /// lease.
    pub fn ready(&self) -> bool {
        self.shared.is_ready()
    }

    /// Waits until messages are accepted and run, at most for `limit`.
    pub async fn ready_within(&self, limit: Duration) {
        let begun = Instant::now();
        while !self.ready() {
            if begun.elapsed() > limit {
                tracing::warn!(
                    "the data plane is not ready yet; webhooks are answered with 503 until it is"
                );
                return;
            }
            sleep(READY_POLL).await;
        }
    }

    /// Reports the node as not ready from now on, while it still serves: a proxy in front stops
    /// sending requests before any is refused.
    pub fn leave(&self) {
        self.shared.leaving.cancel();
    }

    /// Returns the requests of the control plane to drain within a time.
    pub fn drain_requests(&self) -> watch::Receiver<Option<Duration>> {
        self.drain_requests.clone()
    }

    /// Accepts nothing more, finishes messages in flight until `deadline`, and gives the others
    /// back.
    pub async fn drain(self, deadline: Duration) {
        self.stop_polls.cancel();
        self.shared.pipeline.drain(deadline).await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn pipeline_options(options: &Options) -> pipeline::Options {
    pipeline::Options {
        node_id: options.node_id.clone(),
        lease: options.lease,
        in_flight: LANE.0,
        queued: LANE.1,
        memory: options.memory,
        backlog: options.backlog,
        largest: options.body_limit.saturating_mul(2),
        build: options.build.clone(),
        adapters: options.adapters.clone(),
    }
}

fn client_options(options: &Options) -> plans::client::Options {
    plans::client::Options {
        node_id: options.node_id.clone(),
        boot_id: BootId::generate(),
        build: kanat_failpoint::text("node.build")
            .map_or_else(|| options.build.clone(), str::to_owned),
        address: options.address.clone(),
        environments: options.environments.clone(),
        data_dir: options.data_dir.clone(),
    }
}

fn load_reader(plans: Plans, pipeline: Arc<Pipeline>) -> plans::client::ReadLoad {
    Arc::new(move || Load {
        in_flight: saturated(pipeline.in_flight()),
        ready: plans.is_complete() && pipeline.is_ready(),
        draining: pipeline.is_draining(),
    })
}
