//! The work that is counted: a number of repetitions on one thread, after a warm-up that is not
//! counted.

use std::convert::Infallible;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use futures::stream::Pending;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kanat_auth::Sealer;
use kanat_data_plane::{DataPlane, Options};
use kanat_message_log::MessageLog;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_model::id::NodeId;
use kanat_net::egress::{LocalTargets, Policy};
use kanat_net::outbound;
use kanat_proto::node::v1::plan_service_server::{PlanService, PlanServiceServer};
use kanat_proto::node::v1::{ControlMessage, NodeMessage};
use tonic::{Status, Streaming};
use tower::ServiceExt;

use crate::load::Call;
use crate::mapping::OrderMapping;
use crate::{api, order};

/// The function that is counted on the thread that serves.
pub const COUNTED: &str = "kanat_bench::instructions::work::counted";

/// The function that is counted on the log's writer thread.
pub const WRITER: &str = "kanat_message_log::sqlite::writer::Writer::run";

/// Repetitions before the count: the first ones cost more.
const WARM_UP: u64 = 20;

/// A path of a message or a call.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// Eleven fields of an order.
    Mapping,
    /// A webhook, from its request to its 202.
    Webhook,
    /// A call of a published API, from its request to its answer.
    Call,
}

/// Arguments of a process that does one work.
#[derive(Clone, clap::Args)]
pub struct Task {
    #[arg(long)]
    work: Work,
    #[arg(long)]
    times: u64,
    /// The data folder of a service that was stopped.
    #[arg(long)]
    data: PathBuf,
    /// Path of its webhook.
    #[arg(long)]
    webhook: String,
    /// The consumer's key of its API.
    #[arg(long)]
    key: String,
}

impl Work {
    pub const ALL: [Self; 3] = [Self::Mapping, Self::Webhook, Self::Call];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mapping => "mapping",
            Self::Webhook => "webhook",
            Self::Call => "call",
        }
    }

    /// Returns whether the message log takes part.
    pub fn is_logged(self) -> bool {
        match self {
            Self::Mapping => false,
            Self::Webhook | Self::Call => true,
        }
    }

    /// Number of repetitions, over which waits of one thread for another even out.
    pub fn times(self) -> u64 {
        match self {
            Self::Mapping => 200,
            Self::Webhook => 500,
            Self::Call => 300,
        }
    }
}

/// Does the work `times` times, after the warm-up.
pub fn run(task: &Task) -> Result<()> {
    let first = 0..WARM_UP;
    let then = WARM_UP..WARM_UP + task.times;
    if task.work == Work::Mapping {
        let mapping = OrderMapping::parse()?;
        let map =
            move |mut numbers: Range<u64>| numbers.try_for_each(|number| map(&mapping, number));
        map(first)?;
        return counted(Box::new(move || map(then)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let node = runtime.block_on(async {
        let node = Node::start(task).await?;
        serve(&node, task, first).await?;
        // Work that these left must not be counted.
        tokio::time::sleep(Duration::from_millis(100)).await;
        anyhow::Ok(node)
    })?;
    counted(Box::new(|| {
        runtime.block_on(async {
            serve(&node, task, then).await?;
            // This writes the rest to the log.
            node.stop().await;
            Ok(())
        })
    }))
}

/// Runs the work. Callgrind finds this function by its name, and counts it and nothing else on this
/// thread.
#[inline(never)]
fn counted(work: Box<dyn FnOnce() -> Result<()> + '_>) -> Result<()> {
    work().context("the work that is counted")
}

async fn serve(node: &Node, task: &Task, numbers: Range<u64>) -> Result<()> {
    for number in numbers {
        request(node, task, number).await?;
        // Tasks that an answer did not wait for run between two requests, as in a server.
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn request(node: &Node, task: &Task, number: u64) -> Result<()> {
    let call = match task.work {
        Work::Call => api::call(&task.key),
        Work::Webhook | Work::Mapping => Call::webhook(&task.webhook),
    };
    let mut request = Request::post(&call.path)
        .header("host", "bench")
        .header("content-type", "application/json");
    if let Some(bearer) = &call.bearer {
        request = request.header("authorization", format!("Bearer {bearer}"));
    }
    let body = (call.body)(number, 0);
    let answer = node
        .answer(request.body(Full::new(Bytes::from(body)))?)
        .await?;
    let status = answer.status();
    let body = answer.into_body().collect().await;
    let body = body.map_err(|error| anyhow!("{error}"))?.to_bytes();
    let is_right = status == call.status;
    ensure!(
        is_right,
        "the node answered {status}: {}",
        String::from_utf8_lossy(&body)
    );
    Ok(())
}

fn map(mapping: &OrderMapping, number: u64) -> Result<()> {
    let mapped = mapping.map(order::order(number, 0).as_bytes())?;
    ensure!(
        order::number(&mapped) == Some(number),
        "the mapping lost the order's id"
    );
    Ok(())
}

/// A node that runs the plans on its disk.
struct Node {
    plane: DataPlane,
    log: Arc<SqliteLog>,
}

impl Node {
    async fn start(task: &Task) -> Result<Self> {
        let id = std::fs::read_to_string(task.data.join("node-id"))
            .context("the folder has no node id")?;
        let log = Arc::new(
            SqliteLog::open(task.data.join("messages.db"), sqlite::Options::default()).await?,
        );
        let policy = Arc::new(Policy::new(Vec::new(), LocalTargets::Allowed));
        let outbound = outbound::Client::new(policy, &outbound::Options::default())?;
        let sealer = Arc::new(Sealer::from_env_or_file(None, &task.data)?);
        let control = kanat_data_plane::plans::ControlPlanes::new(PlanServiceServer::new(Silent));
        let options = Options::new(NodeId::new(id.trim()), task.data.clone());
        let plane = DataPlane::start(
            options,
            Arc::clone(&log) as Arc<dyn MessageLog>,
            control,
            outbound,
            sealer,
        )
        .await;
        plane.ready_within(Duration::from_secs(60)).await;
        ensure!(plane.ready(), "the node has nothing on its disk");
        Ok(Self { plane, log })
    }

    async fn answer(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<kanat_net::Body>, Infallible> {
        self.plane.service().oneshot(request).await
    }

    async fn stop(self) {
        self.plane.drain(Duration::from_secs(10)).await;
        self.log.close().await;
    }
}

/// A control plane that sends nothing.
struct Silent;

#[tonic::async_trait]
impl PlanService for Silent {
    type SyncStream = Pending<Result<ControlMessage, Status>>;

    async fn sync(
        &self,
        _: tonic::Request<Streaming<NodeMessage>>,
    ) -> Result<tonic::Response<Self::SyncStream>, Status> {
        Ok(tonic::Response::new(futures::stream::pending()))
    }
}
