//! A whole deployment behind nginx with the file that `deploy/nginx` has for it: paths lead where
//! they should, and all nodes are restarted under load without a caller noticing.

use std::collections::HashSet;

use kanat_proto::v1::flow_service_client::FlowServiceClient;
use kanat_proto::v1::{GetFlowRequest, ListFlowsRequest};
use kanat_tests::authority::Authority;
use kanat_tests::load::{Load, Pace};
use kanat_tests::nginx::{Nginx, Upstreams};
use kanat_tests::rest::text;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{FakeTarget, Rest, app, soak, until};
use serde_json::json;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::webhook::passthrough;

/// Requests a second, whether or not earlier ones were answered.
const RATE: u32 = 500;

/// Two control planes over TLS, three nodes, nginx.
struct Deployment {
    authority: Authority,
    controls: Vec<TestProcess>,
    nodes: Vec<TestProcess>,
    nginx: Nginx,
    /// A caller of nginx, as of one server.
    front: Rest,
    target: FakeTarget,
    flow: String,
    /// Path of the flow's webhook.
    path: String,
    webhook: String,
    /// Goes last: its database is theirs.
    _split: Split,
}

impl Deployment {
    async fn start() -> Self {
        let split = Split::new();
        let authority = Authority::new(split.folder.path(), "control-ca");
        authority.identity("hooks");
        let mut controls = Vec::new();
        for name in ["one", "other"] {
            controls.push(
                split
                    .control_plane_over_tls_for_hosts(name, &authority, &["control.example.com"])
                    .await,
            );
        }
        let urls = controls
            .iter()
            .map(|control| control.base.as_str())
            .collect::<Vec<_>>()
            .join(",");
        let mut nodes = Vec::new();
        for name in ["a", "b", "c"] {
            let environment = [
                ("KANAT_CONTROL_PLANE", urls.as_str()),
                ("KANAT_TLS_CA", &authority.file()),
            ];
            nodes.push(split.node_with(name, &[], &environment).await);
        }
        let nginx = Nginx::start(&Upstreams {
            control_planes: &controls.iter().map(address).collect::<Vec<_>>(),
            nodes: &nodes.iter().map(address).collect::<Vec<_>>(),
            certificates: split.folder.path(),
        })
        .await;
        let front = Rest::trusting(&nginx.base, app::KEY, &authority.pem());
        let target = FakeTarget::start().await;
        front.http_instance("erp", &target.url()).await;
        let (flow, path) = front.deployed(&passthrough("orders")).await;
        for node in &nodes {
            node.becomes_ready().await;
        }
        let webhook = format!("{}{path}", nginx.base);
        Self {
            authority,
            controls,
            nodes,
            nginx,
            front,
            target,
            flow,
            path,
            webhook,
            _split: split,
        }
    }
}

/// Host and port.
fn address(process: &TestProcess) -> &str {
    process.base.split("//").last().unwrap_or_default()
}

#[tokio::test]
async fn nginx_leads_each_path_to_the_plane_that_answers_it() {
    let mut deployment = Deployment::start().await;
    let Deployment {
        front,
        nginx,
        target,
        ..
    } = &deployment;

    // JSON, and a webhook that reaches the target.
    let id = front.webhook(&deployment.webhook, &json!({"n": 1})).await;
    front.message_becomes(&id, "delivered").await;
    assert_eq!(target.received().len(), 1);
    // More than fits in memory: read whole, and sent on.
    let large = json!({ "n": "x".repeat(900 << 10) });
    front
        .message_becomes(
            &front.webhook(&deployment.webhook, &large).await,
            "delivered",
        )
        .await;

    // gRPC between calls of JSON, over connections that nginx keeps.
    let tls =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(deployment.authority.pem()));
    let channel = Endpoint::from_shared(nginx.base.clone())
        .unwrap()
        .tls_config(tls)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut flows = FlowServiceClient::new(channel);
    for _ in 0..5 {
        let listed = flows
            .list_flows(authorized(ListFlowsRequest::default()))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(listed.data[0].id, deployment.flow);
        assert_eq!(
            front.get("/api/v1/flows").await.expect(200)["data"][0]["id"],
            *deployment.flow
        );
    }
    let unknown = flows
        .get_flow(authorized(GetFlowRequest {
            id: "flw_nobody".to_owned(),
        }))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), tonic::Code::NotFound, "{unknown:?}");

    // gRPC-Web of a browser: an empty list request, answered by frames in the body.
    let web = front
        .raw(
            "POST",
            "/kanat.v1.FlowService/ListFlows",
            "application/grpc-web+proto",
            vec![0; 5],
        )
        .await;
    assert_eq!(web.status, 200, "{}", web.text);
    assert_eq!(
        web.header("content-type"),
        "application/grpc-web+proto",
        "{}",
        web.text
    );
    assert!(web.text.contains("grpc-status:0"), "{}", web.text);

    // What is not for callers, what nobody has, and what is the node's to refuse.
    for (path, status) in [
        ("/ready", 404),
        ("/kanat.node.v1.PlanService/Sync", 404),
        ("/v1/nowhere", 404),
    ] {
        assert_eq!(front.get(path).await.status, status, "{path}");
    }
    assert_eq!(front.get("/health").await.status, 200);
    assert_eq!(front.without_key().get("/api/v1/flows").await.status, 401);
    let oversized = front
        .raw(
            "POST",
            &deployment.webhook,
            "text/plain",
            vec![b'x'; 2 << 20],
        )
        .await;
    assert_eq!(oversized.status, 413);
    assert_eq!(
        oversized.json()["code"],
        "INVALID_ARGUMENT",
        "the node says why: {}",
        oversized.text
    );

    // A control plane and a node that are gone are passed over.
    deployment.controls[0].kill().await;
    deployment.nodes[0].kill().await;
    let Deployment { front, webhook, .. } = &deployment;
    for n in 0..6 {
        assert_eq!(front.get("/api/v1/flows").await.status, 200);
        assert_eq!(front.post(webhook, &json!({ "n": n })).await.status, 202);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_500_requests_a_second_refuses_none_through_nginx() {
    let mut deployment = Deployment::start().await;
    let Deployment {
        nginx,
        authority,
        path,
        ..
    } = &deployment;
    let load = Load::start(
        &nginx.base,
        path,
        Some(authority),
        Pace {
            per_second: RATE,
            waiting: 1_000,
        },
    );
    for node in &mut deployment.nodes {
        more_are_answered(&load).await;
        assert_eq!(node.terminate().await, Some(0), "{}", node.log());
        more_are_answered(&load).await;
        node.restart().await;
        node.becomes_ready().await;
    }
    more_are_answered(&load).await;
    let outcome = load.stop().await;
    println!(
        "{} requests, {:.0} a second of {RATE}, through a rolling restart behind nginx: {} \
         refused; answered after {} ms (median), {} ms (p99), {} ms (at most)",
        outcome.took.len(),
        outcome.rate(),
        outcome.refused.len(),
        outcome.took(50).as_millis(),
        outcome.took(99).as_millis(),
        outcome.took(100).as_millis()
    );
    // What a machine that is busy with other tests cannot answer, it is not offered; but it is no
    // trickle.
    let least = f64::from(RATE) * if soak::is_on() { 0.95 } else { 0.25 };
    assert!(
        outcome.rate() >= least,
        "{:.0} requests a second were offered",
        outcome.rate()
    );
    assert!(
        outcome.refused.is_empty(),
        "{:?}",
        &outcome.refused[..outcome.refused.len().min(5)]
    );

    // Each 202 stands for a message that is delivered; a node that broke off may have left one
    // more.
    let Deployment {
        front,
        flow,
        target,
        ..
    } = &deployment;
    let total = until("every message is delivered", || async {
        let count = async |filter: &str| {
            let path = format!("/api/v1/messages?flowId={flow}&limit=1{filter}");
            front.get(&path).await.expect(200)["pagination"]["total"]
                .as_u64()
                .unwrap()
        };
        let all = count("").await;
        let delivered = count("&status=delivered").await;
        (all == delivered).then_some(all)
    })
    .await;
    let received = target.received();
    let received: HashSet<_> = received
        .iter()
        .map(|received| received.header("idempotency-key"))
        .collect();
    let id = |accepted: &String| {
        text(&serde_json::from_str::<serde_json::Value>(accepted).unwrap()["messageId"])
    };
    let acked: Vec<_> = outcome.accepted.iter().map(id).collect();
    let lost = acked
        .iter()
        .filter(|id| !received.contains(id.as_str()))
        .count();
    println!(
        "{} acked, {lost} lost, {} taken twice",
        acked.len(),
        total - acked.len() as u64
    );
    assert_eq!(lost, 0);
}

/// A second's worth.
async fn more_are_answered(load: &Load) {
    let before = load.answered();
    until("requests are answered", || async {
        (load.answered() >= before + RATE as usize).then_some(())
    })
    .await;
}

fn authorized<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert(
        "authorization",
        format!("Bearer {}", app::KEY).parse().unwrap(),
    );
    request
}
