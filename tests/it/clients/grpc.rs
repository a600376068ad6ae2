//! A gRPC client over HTTP/2, with reflection and health.

use kanat_proto::v1::connector_service_client::ConnectorServiceClient;
use kanat_proto::v1::flow_service_client::FlowServiceClient;
use kanat_proto::v1::lookup_table_service_client::LookupTableServiceClient;
use kanat_proto::v1::message_service_client::MessageServiceClient;
use kanat_proto::v1::*;
use kanat_tests::{FakeTarget, TestApp, app};
use prost::Message as _;
use serde_json::json;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt;

use super::{DELIVERED, FLOW, PAYLOAD};

async fn channel(app: &TestApp) -> Channel {
    Endpoint::from_shared(app.base.clone())
        .unwrap()
        .connect()
        .await
        .unwrap()
}

fn authorized<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(
        "authorization",
        format!("Bearer {}", app::KEY).parse().unwrap(),
    );
    request
}

#[tokio::test]
async fn an_empty_filter_and_a_nul_character_are_refused_over_grpc() {
    let app = TestApp::start().await;
    let mut flows = FlowServiceClient::new(channel(&app).await);
    let fields = |status: tonic::Status| {
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let found = status
            .get_error_details()
            .bad_request()
            .unwrap()
            .field_violations
            .clone();
        found
            .into_iter()
            .map(|violation| violation.field)
            .collect::<Vec<_>>()
    };
    let empty = ListFlowsRequest {
        search: Some(String::new()),
        ..ListFlowsRequest::default()
    };
    assert_eq!(
        fields(flows.list_flows(authorized(empty)).await.unwrap_err()),
        ["search"]
    );
    let nul = GetFlowRequest {
        id: "flw_\0".to_owned(),
    };
    assert_eq!(
        fields(flows.get_flow(authorized(nul)).await.unwrap_err()),
        ["id"]
    );
}

#[tokio::test]
async fn a_stream_of_a_grpc_client_ends_with_its_key() {
    let app = TestApp::start().await;
    let made = app
        .api
        .post(
            "/api/v1/api-keys",
            &json!({ "name": "reader", "role": "viewer" }),
        )
        .await
        .expect(201);
    let mut request = Request::new(StreamMessagesRequest::default());
    let bearer = format!("Bearer {}", made["key"].as_str().unwrap());
    request
        .metadata_mut()
        .insert("authorization", bearer.parse().unwrap());
    let mut messages = MessageServiceClient::new(channel(&app).await);
    let mut events = messages
        .stream_messages(request)
        .await
        .unwrap()
        .into_inner();
    app.api
        .delete(&format!(
            "/api/v1/api-keys/{}",
            made["id"].as_str().unwrap()
        ))
        .await
        .expect(204);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), events.message()).await;
    assert_eq!(
        ended.expect("the stream ends").unwrap_err().code(),
        Code::Unauthenticated
    );
}

#[tokio::test]
async fn a_grpc_client_creates_deploys_runs_and_follows_a_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let channel = channel(&app).await;
    let config = Json {
        text: json!({"base_url": target.url(), "auth": "none"}).to_string(),
    };
    let instance = CreateConnectorInstanceRequest {
        catalog_id: "http".to_owned(),
        name: "erp".to_owned(),
        display_name: None,
        config: Some(config),
    };
    ConnectorServiceClient::new(channel.clone())
        .create_connector_instance(authorized(instance))
        .await
        .unwrap();

    let mut flows = FlowServiceClient::new(channel.clone());
    let create = CreateFlowRequest {
        yaml_config: FLOW.to_owned(),
        ..CreateFlowRequest::default()
    };
    let id = flows
        .create_flow(authorized(create))
        .await
        .unwrap()
        .into_inner()
        .id;
    let deploy = DeployFlowRequest {
        id: id.clone(),
        ..Default::default()
    };
    let flow = flows
        .deploy_flow(authorized(deploy))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(flow.status.as_str(), "active");
    assert_eq!(flow.version, 1);

    let mut messages = MessageServiceClient::new(channel);
    let follow = StreamMessagesRequest {
        flow_id: Some(id.clone()),
        ..StreamMessagesRequest::default()
    };
    let mut events = messages
        .stream_messages(authorized(follow))
        .await
        .unwrap()
        .into_inner();
    let run = RunFlowRequest {
        id,
        payload: Some(Json {
            text: PAYLOAD.to_owned(),
        }),
    };
    let message_id = flows
        .run_flow(authorized(run))
        .await
        .unwrap()
        .into_inner()
        .message_id;
    loop {
        let event = events.message().await.unwrap().unwrap();
        let message = event.message.unwrap();
        assert_eq!(message.id.as_str(), message_id.as_str());
        assert_eq!(event.event.as_str(), "message");
        if message.status == "delivered" {
            break;
        }
    }
    let get = GetMessageRequest { id: message_id };
    let message = messages
        .get_message(authorized(get))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        message.payload.unwrap().text,
        PAYLOAD,
        "the payload is kept as it was sent"
    );
    assert_eq!(message.output.unwrap().text, DELIVERED);
    assert_eq!(target.received()[0].body, DELIVERED.as_bytes());
}

#[tokio::test]
async fn errors_carry_their_details() {
    let app = TestApp::start().await;
    let channel = channel(&app).await;
    let mut flows = FlowServiceClient::new(channel.clone());
    let anonymous = flows
        .list_flows(ListFlowsRequest::default())
        .await
        .unwrap_err();
    assert_eq!(anonymous.code(), Code::Unauthenticated);
    let unknown = flows
        .get_flow(authorized(GetFlowRequest {
            id: "flw_nobody".to_owned(),
        }))
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let wrong = CreateFlowRequest {
        yaml_config: "flow: [".to_owned(),
        ..CreateFlowRequest::default()
    };
    let wrong = flows.create_flow(authorized(wrong)).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    let details = wrong.get_error_details();
    assert!(
        !details.bad_request().unwrap().field_violations.is_empty(),
        "{wrong:?}"
    );

    let mut tables = LookupTableServiceClient::new(channel);
    let create = CreateLookupTableRequest {
        name: "twice".to_owned(),
        description: None,
    };
    tables
        .create_lookup_table(authorized(create.clone()))
        .await
        .unwrap();
    assert_eq!(
        tables
            .create_lookup_table(authorized(create))
            .await
            .unwrap_err()
            .code(),
        Code::AlreadyExists
    );
}

#[tokio::test]
async fn reflection_lists_the_services_and_gives_their_files() {
    let app = TestApp::start().await;
    let ask = |request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let requests = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(
            "kanat.v1.FlowService".to_owned(),
        )),
    ];
    let mut client = ServerReflectionClient::new(channel(&app).await);
    let stranger = client
        .server_reflection_info(futures::stream::iter([requests[0].clone()]))
        .await;
    assert_eq!(stranger.unwrap_err().code(), Code::Unauthenticated);
    let mut request = Request::new(futures::stream::iter(requests));
    request.metadata_mut().insert(
        "authorization",
        format!("Bearer {}", app::KEY).parse().unwrap(),
    );
    let mut answers = client
        .server_reflection_info(request)
        .await
        .unwrap()
        .into_inner();
    let mut next = async || {
        answers
            .message()
            .await
            .unwrap()
            .unwrap()
            .message_response
            .unwrap()
    };
    let MessageResponse::ListServicesResponse(list) = next().await else {
        panic!("no list of services")
    };
    let names: Vec<_> = list.service.iter().map(|s| s.name.as_str()).collect();
    for service in [
        "FlowService",
        "LookupTableService",
        "ConnectorService",
        "MessageService",
        "ApiKeyService",
    ] {
        assert!(
            names.contains(&format!("kanat.v1.{service}").as_str()),
            "{service} in {names:?}"
        );
    }
    let MessageResponse::FileDescriptorResponse(files) = next().await else {
        panic!("no file")
    };
    let file = prost_types::FileDescriptorProto::decode(&*files.file_descriptor_proto[0]).unwrap();
    assert_eq!(file.name(), "kanat/v1/flow.proto");
}

#[tokio::test]
async fn health_says_serving_without_a_credential() {
    let app = TestApp::start().await;
    let mut health = HealthClient::new(channel(&app).await);
    let answer = health
        .check(HealthCheckRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
}
