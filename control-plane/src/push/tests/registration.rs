//! Registration of node ids: which node may replace which.

use kanat_auth::key;
use kanat_model::Secret;
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::plan_service_client::PlanServiceClient;
use kanat_proto::node::v1::{ControlMessage, Hello, NodeMessage};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Streaming};

use super::node::Control;
use crate::push::PlanStreamService;
use crate::push::nodes::Status;
use crate::push::remote::{BoundCredential, BoundNode, NodeAuthenticator, RemotePlanService};

/// The stream of a node of another process.
pub struct Stream {
    inbound: Streaming<ControlMessage>,
    _out: mpsc::Sender<NodeMessage>,
}

/// Opens a stream for staging as this node, up to its welcome.
pub async fn connect(control: &Control, token: &str, node: &str) -> Result<Stream, tonic::Status> {
    let bound = BoundNode {
        credential: BoundCredential::Token(key::sha256("of-staging")),
        environments: vec!["staging".to_owned()],
    };
    let access =
        NodeAuthenticator::by_token(&Secret::new("join".to_owned())).and_bound(vec![bound]);
    let plans = PlanStreamService::new(&control.hub).into_server();
    let mut client = PlanServiceClient::new(RemotePlanService::new(access, plans));
    let (out, messages) = mpsc::channel(1);
    let hello = Hello {
        environments: vec!["staging".to_owned()],
        ..control.hello(node)
    };
    let kind = Some(Out::Hello(hello));
    out.send(NodeMessage { kind }).await.unwrap();
    let mut request = Request::new(ReceiverStream::new(messages));
    let authorization = format!("Bearer {token}").parse().unwrap();
    request
        .metadata_mut()
        .insert("authorization", authorization);
    let mut inbound = client.sync(request).await?.into_inner();
    inbound.message().await?;
    Ok(Stream { inbound, _out: out })
}

async fn is_refused(control: &Control, token: &str, node: &str) {
    let refused = connect(control, token, node).await.err().unwrap();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert!(refused.message().contains(node), "{refused}");
}

/// Returns when that node is not connected any more.
async fn is_gone(control: &Control, node: &str) {
    let gone = |nodes: &[super::NodeState]| {
        nodes
            .iter()
            .any(|known| known.id.as_str() == node && known.status == Status::Disconnected)
    };
    control.known(gone).await;
}

#[tokio::test]
async fn a_node_replaces_one_with_the_same_token_and_no_other() {
    let control = Control::start().await;
    let mut own = control.up_to_date().await;
    let mut first = connect(&control, "join", "node_2").await.unwrap();
    is_refused(&control, "of-staging", "node_2").await;
    is_refused(&control, "of-staging", "node_1").await;
    is_refused(&control, "join", "node_1").await;
    control.put("flow/1", "a").await;
    own.take_delta().await;

    let second = connect(&control, "join", "node_2").await.unwrap();
    let ended = loop {
        match first.inbound.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it is told why it ends"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Aborted, "{ended}");

    // Where nobody is connected, the id is free, unless it is that of the node of this process.
    drop(second);
    is_gone(&control, "node_2").await;
    connect(&control, "of-staging", "node_2").await.unwrap();
    drop(own);
    is_gone(&control, "node_1").await;
    is_refused(&control, "join", "node_1").await;
    control.connect(control.hello("node_1")).await;
}
