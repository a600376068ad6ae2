//! A gRPC-Web client, as a browser speaks it: HTTP/1.1, frames in the body, trailers as the last
//! frame.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kanat_proto::v1::*;
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::json;

use super::{DELIVERED, FLOW, PAYLOAD};

const TRAILERS: u8 = 0x80;

/// The message, or the gRPC status and its text.
type Outcome<T> = Result<T, (String, String)>;

fn frame(message: &impl prost::Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(&body);
    frame
}

/// The frames of a body, with their flags.
fn frames(mut body: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = body.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        frames.push((head[0], rest[..length].to_vec()));
        body = &rest[length..];
    }
    frames
}

async fn call<T: prost::Message + Default>(
    api: &Rest,
    method: &str,
    request: &impl prost::Message,
) -> Outcome<T> {
    let answer = api
        .request("POST", &format!("/kanat.v1.{method}"))
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1")
        .body(frame(request))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.version(), reqwest::Version::HTTP_11);
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/grpc-web")
    );
    // A call that fails at once tells in its head, any other in its last frame.
    let mut trailers: Vec<(String, String)> = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let frames = frames(&answer.bytes().await.unwrap());
    for (_, text) in frames.iter().filter(|(flag, _)| *flag == TRAILERS) {
        let lines = std::str::from_utf8(text)
            .unwrap()
            .lines()
            .filter_map(|line| line.split_once(':'));
        trailers.extend(
            lines.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())),
        );
    }
    let trailer = |name: &str| {
        trailers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
            .unwrap_or_default()
    };
    match trailer("grpc-status").as_str() {
        "0" => Ok(T::decode(
            frames
                .iter()
                .find(|(flag, _)| *flag == 0)
                .unwrap()
                .1
                .as_slice(),
        )
        .unwrap()),
        status => Err((status.to_owned(), trailer("grpc-message"))),
    }
}

#[tokio::test]
async fn a_grpc_web_client_creates_deploys_and_runs_a_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let api = &app.api;
    let config = Json {
        text: json!({"base_url": target.url(), "auth": "none"}).to_string(),
    };
    let instance = CreateConnectorInstanceRequest {
        catalog_id: "http".to_owned(),
        name: "erp".to_owned(),
        display_name: None,
        config: Some(config),
    };
    let _: ConnectorInstance = call(api, "ConnectorService/CreateConnectorInstance", &instance)
        .await
        .unwrap();
    let create = CreateFlowRequest {
        yaml_config: FLOW.to_owned(),
        ..CreateFlowRequest::default()
    };
    let flow: Flow = call(api, "FlowService/CreateFlow", &create).await.unwrap();
    let deploy = DeployFlowRequest {
        id: flow.id,
        ..Default::default()
    };
    let flow: Flow = call(api, "FlowService/DeployFlow", &deploy).await.unwrap();
    assert_eq!(flow.status.as_str(), "active");
    assert_eq!(flow.version, 1);
    let run = RunFlowRequest {
        id: flow.id,
        payload: Some(Json {
            text: PAYLOAD.to_owned(),
        }),
    };
    let run: RunFlowResponse = call(api, "FlowService/RunFlow", &run).await.unwrap();
    let get = GetMessageRequest { id: run.message_id };
    until("the message is delivered", || async {
        let message: Message = call(api, "MessageService/GetMessage", &get).await.unwrap();
        (message.status == "delivered").then_some(())
    })
    .await;
    assert_eq!(target.received()[0].body, DELIVERED.as_bytes());
}

#[tokio::test]
async fn errors_come_as_trailers() {
    let app = TestApp::start().await;
    let get = GetFlowRequest {
        id: "flw_nobody".to_owned(),
    };
    let (status, message) = call::<Flow>(&app.api, "FlowService/GetFlow", &get)
        .await
        .unwrap_err();
    assert_eq!(status, "5", "{message}");
    let (status, _) = call::<Flow>(&app.api.without_key(), "FlowService/GetFlow", &get)
        .await
        .unwrap_err();
    assert_eq!(status, "16");
}

#[tokio::test]
async fn text_frames_are_taken_too() {
    let app = TestApp::start().await;
    let request = app
        .api
        .request("POST", "/kanat.v1.FlowService/ListFlows")
        .header("content-type", "application/grpc-web-text+proto")
        .header("accept", "application/grpc-web-text+proto")
        .body(STANDARD.encode(frame(&ListFlowsRequest::default())));
    let answer = Rest::send(request).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("application/grpc-web-text"),
        "{:?}",
        answer.headers
    );
    assert!(!answer.text.is_empty());
}
