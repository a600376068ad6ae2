//! The plan service: accepts the stream of a node, reads its hello, and starts its session.

use std::sync::Arc;

use kanat_plan_stream::{MAX_MESSAGE_BYTES, PlanSchemaRange, SILENCE_TIMEOUT, plan_schema};
use kanat_proto::node::v1::node_message::Kind;
use kanat_proto::node::v1::plan_service_server::{PlanService, PlanServiceServer};
use kanat_proto::node::v1::{ControlMessage, Hello, NodeMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::context::Context;
use super::grant::Grant;
use super::hub::Hub;
use super::session::Session;

/// Messages that may wait to be sent to a node. When the queue is full, only the session of that
/// node waits.
const QUEUE: usize = 16;

/// Plan service, which nodes connect to.
#[derive(Debug, Clone)]
pub struct PlanStreamService {
    context: Arc<Context>,
}

impl PlanStreamService {
    pub fn new(hub: &Hub) -> Self {
        Self {
            context: Arc::clone(&hub.context),
        }
    }

    /// The tonic service, for a listener or for a node in this process.
    pub fn into_server(self) -> PlanServiceServer<Self> {
        PlanServiceServer::new(self)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

#[tonic::async_trait]
impl PlanService for PlanStreamService {
    type SyncStream = ReceiverStream<Result<ControlMessage, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<NodeMessage>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        // A node of this process has none: everything is open to it.
        let grant = request
            .extensions()
            .get::<Grant>()
            .cloned()
            .unwrap_or_default();
        let mut inbound = request.into_inner();
        let hello = hello(&mut inbound).await?;
        let (outbound, stream) = mpsc::channel(QUEUE);
        let context = Arc::clone(&self.context);
        let session = Session::open(context, hello, grant, inbound, outbound).await?;
        self.context.tasks.run_to_completion(session.run());
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Reads the first message of a stream: a hello of a node that this build can serve.
async fn hello(inbound: &mut Streaming<NodeMessage>) -> Result<Hello, Status> {
    let first = tokio::time::timeout(SILENCE_TIMEOUT, inbound.message())
        .await
        .map_err(|_| Status::deadline_exceeded("the node said nothing"))??;
    let Some(Kind::Hello(hello)) = first.and_then(|message| message.kind) else {
        return Err(Status::invalid_argument(
            "the first message of a stream is a hello",
        ));
    };
    if hello.node_id.is_empty() || hello.boot_id.is_empty() {
        return Err(Status::invalid_argument(
            "a hello names its node and its boot",
        ));
    }
    let PlanSchemaRange { min, max } = plan_schema::SUPPORTED;
    if !plan_schema::SUPPORTED.overlaps(PlanSchemaRange {
        min: hello.min_plan_schema,
        max: hello.max_plan_schema,
    }) {
        return Err(Status::failed_precondition(format!(
            "the node runs plan schemas {} to {}, and this control plane knows {min} to {max}",
            hello.min_plan_schema, hello.max_plan_schema
        )));
    }
    Ok(hello)
}
