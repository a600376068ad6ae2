//! Flows from a draft to a deployed version, and back.

mod deploy;

use futures::future::join_all;
use futures::join;
use kanat_message_log::{Filter, Position};
use kanat_model::message::Status as MessageStatus;
use kanat_model::page::Page;
use kanat_proto::v1::{
    CreateFlowRequest, CreateLookupTableRequest, DeleteConnectorInstanceRequest, DeleteFlowRequest,
    DeleteLookupTableRequest, DeployFlowRequest, Flow, GetFlowPlanRequest, GetFlowRequest, Json,
    ListFlowVersionsRequest, ListFlowsRequest, PauseFlowRequest, ResumeFlowRequest,
    RollbackFlowRequest, RotateWebhookTokenRequest, RunFlowRequest, SetLookupEntryRequest,
    TestFlowRequest, UpdateFlowRequest, ValidateFlowRequest,
};
use tonic::Code;

use crate::plane::{TestPlane, faults};

const ORDERS: &str = "\
flow: orders
description: Orders into the ERP
source: { trigger: webhook }
when: source.total > 0
target: { connector: erp, endpoint: /orders, method: POST }
mapping:
  order_id: source.id | required
  country: source.country | lookup(countries, ZZ)
ordering_key: source.id
idempotency_key: source.id
";

async fn create(plane: &TestPlane, yaml: &str) -> Flow {
    let request = CreateFlowRequest {
        yaml_config: yaml.to_owned(),
        ..Default::default()
    };
    plane
        .flows()
        .create_flow(request)
        .await
        .unwrap()
        .into_inner()
}

/// What `ORDERS` names; gives the ids of the instance and of the table.
async fn surroundings(plane: &TestPlane) -> (String, String) {
    let instance = plane.http_instance("erp").await;
    let table = CreateLookupTableRequest {
        name: "countries".to_owned(),
        description: None,
    };
    let table = plane
        .tables()
        .create_lookup_table(table)
        .await
        .unwrap()
        .into_inner()
        .id;
    let entry = SetLookupEntryRequest {
        id: table.clone(),
        key: "DE".to_owned(),
        value: Some("Germany".to_owned()),
    };
    plane.tables().set_lookup_entry(entry).await.unwrap();
    (instance, table)
}

async fn deploy(plane: &TestPlane, id: &str) -> Result<Flow, tonic::Status> {
    let request = DeployFlowRequest {
        id: id.to_owned(),
        ..Default::default()
    };
    plane
        .flows()
        .deploy_flow(request)
        .await
        .map(tonic::Response::into_inner)
}

async fn test(plane: &TestPlane, id: &str, sample: &str) -> kanat_proto::v1::TestFlowResponse {
    let request = TestFlowRequest {
        id: id.to_owned(),
        sample_data: Some(Json {
            text: sample.to_owned(),
        }),
        ..Default::default()
    };
    plane.flows().test_flow(request).await.unwrap().into_inner()
}

#[tokio::test]
async fn a_draft_may_name_what_is_missing_and_a_deploy_names_all_of_it() {
    let plane = TestPlane::start().await;
    let flow = create(&plane, ORDERS).await;
    assert_eq!(flow.name.as_str(), "orders");
    assert_eq!(flow.status.as_str(), "draft");
    assert_eq!(flow.version, 0);
    assert_eq!(flow.description, "Orders into the ERP");
    assert_eq!(flow.warnings.len(), 2, "{:?}", flow.warnings);
    assert!(flow.plan.is_none() && flow.webhook_url.is_some());
    let refused = deploy(&plane, &flow.id).await.unwrap_err();
    let (code, fields) = faults(&refused);
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(fields.len(), 2, "{fields:?}");
    assert!(
        fields.contains(&"target.connector".to_owned())
            && fields.contains(&"mapping.country".to_owned())
    );
}

#[tokio::test]
async fn pause_and_resume_follow_the_states() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    let pause = || PauseFlowRequest {
        id: flow.id.clone(),
    };
    let resume = || ResumeFlowRequest {
        id: flow.id.clone(),
    };
    let mut flows = plane.flows();
    assert_eq!(
        flows.pause_flow(pause()).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    deploy(&plane, &flow.id).await.unwrap();
    assert_eq!(
        flows.resume_flow(resume()).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        flows.pause_flow(pause()).await.unwrap().into_inner().status,
        "paused"
    );
    assert_eq!(
        flows
            .resume_flow(resume())
            .await
            .unwrap()
            .into_inner()
            .status,
        "active"
    );
    let update = |status: &str| UpdateFlowRequest {
        id: flow.id.clone(),
        status: Some(status.to_owned()),
        ..Default::default()
    };
    assert_eq!(
        flows
            .update_flow(update("paused"))
            .await
            .unwrap()
            .into_inner()
            .status,
        "paused"
    );
    assert_eq!(
        flows.update_flow(update("draft")).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    let refused = flows.update_flow(update("asleep")).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["status".to_owned()])
    );
    let filter = ListFlowsRequest {
        status: Some("paused".to_owned()),
        ..Default::default()
    };
    assert_eq!(
        flows
            .list_flows(filter)
            .await
            .unwrap()
            .into_inner()
            .data
            .len(),
        1
    );
}

#[tokio::test]
async fn a_test_maps_with_the_real_tables_and_delivers_nothing() {
    let plane = TestPlane::start().await;
    let flow = create(&plane, ORDERS).await;
    surroundings(&plane).await;
    let mapped = test(
        &plane,
        &flow.id,
        r#"{"id": 9007199254740993, "total": 1, "country": "DE"}"#,
    )
    .await;
    assert_eq!(
        mapped.output.unwrap().text,
        r#"{"order_id":9007199254740993,"country":"Germany"}"#
    );
    assert!(mapped.matched && mapped.errors.is_empty());
    let filtered = test(&plane, &flow.id, r#"{"id": 1, "total": 0}"#).await;
    assert!(!filtered.matched && filtered.output.is_none() && filtered.errors.is_empty());
    let failed = test(&plane, &flow.id, r#"{"total": 1}"#).await;
    assert!(failed.matched && failed.output.is_none());
    assert_eq!(failed.errors[0].field.as_deref(), Some("order_id"));
    let request = TestFlowRequest {
        id: flow.id,
        sample_data: Some(Json {
            text: "{".to_owned(),
        }),
        ..Default::default()
    };
    let refused = plane.flows().test_flow(request).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["sampleData".to_owned()])
    );
}

#[tokio::test]
async fn a_run_by_hand_is_in_the_log_and_a_repeat_is_not() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    let run = || RunFlowRequest {
        id: flow.id.clone(),
        payload: Some(Json {
            text: r#"{"id": "A-1", "total": 1}"#.to_owned(),
        }),
    };
    assert_eq!(
        plane.flows().run_flow(run()).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    deploy(&plane, &flow.id).await.unwrap();
    let first = plane.flows().run_flow(run()).await.unwrap().into_inner();
    let second = plane.flows().run_flow(run()).await.unwrap().into_inner();
    assert_eq!(first.status.as_str(), "accepted");
    assert_eq!(second.status.as_str(), "duplicate");
    assert_eq!(first.message_id, second.message_id);

    let tenant = plane.tenant(&flow.environment_id).await;
    let filter = Filter::flow(tenant, flow.id.as_str().into());
    let found = plane
        .log
        .list(&filter, Position::Page(Page::new(None, None)))
        .await
        .unwrap();
    let [message] = found.messages.as_slice() else {
        panic!("one message: {found:?}")
    };
    assert_eq!(message.id.as_str(), first.message_id.as_str());
    assert_eq!(message.flow_version, 1);
    assert_eq!(message.status, MessageStatus::Received);
    assert_eq!(message.max_attempts, 4);
    assert_eq!(message.ordering_key.as_deref(), Some("A-1"));
    assert!(
        plane
            .log
            .plan(&flow.id.as_str().into(), 1)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_rotated_token_gives_another_url() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    let rotate = |grace: Option<&str>| RotateWebhookTokenRequest {
        id: flow.id.clone(),
        grace_period: grace.map(str::to_owned),
    };
    let manual = create(
        &plane,
        &ORDERS
            .replace("flow: orders", "flow: manual")
            .replace("webhook", "manual"),
    )
    .await;
    let request = RotateWebhookTokenRequest {
        id: manual.id,
        grace_period: None,
    };
    let refused = plane
        .flows()
        .rotate_webhook_token(request)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let before = deploy(&plane, &flow.id).await.unwrap().webhook_url;
    let after = plane
        .flows()
        .rotate_webhook_token(rotate(Some("24h")))
        .await
        .unwrap()
        .into_inner();
    assert_ne!(after.webhook_url, before);
    assert_eq!(after.version, 1);
    let refused = plane
        .flows()
        .rotate_webhook_token(rotate(Some("soon")))
        .await
        .unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["gracePeriod".to_owned()])
    );
}

#[tokio::test]
async fn a_wrong_definition_is_refused_with_every_error() {
    let plane = TestPlane::start().await;
    let wrong = ORDERS
        .replace("when:", "wehn:")
        .replace("| required", "| requird");
    let request = CreateFlowRequest {
        yaml_config: wrong.clone(),
        ..Default::default()
    };
    let (code, fields) = faults(&plane.flows().create_flow(request).await.unwrap_err());
    assert_eq!(code, Code::InvalidArgument, "{fields:?}");
    assert_eq!(fields.len(), 2, "{fields:?}");
    let request = ValidateFlowRequest { yaml_config: wrong };
    let found = plane
        .flows()
        .validate_flow(request)
        .await
        .unwrap()
        .into_inner();
    assert!(!found.valid);
    assert_eq!(found.errors.len(), 2);
    assert!(
        found
            .errors
            .iter()
            .all(|error| error.severity == "error" && error.line > 0 && error.column > 0)
    );
}

#[tokio::test]
async fn a_flow_for_published_apis_is_deployed_like_any_other() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let published = ORDERS.replace("trigger: webhook", "trigger: api");
    let flow = create(&plane, &published).await;
    let deployed = deploy(&plane, &flow.id).await.unwrap();
    assert_eq!(deployed.status.as_str(), "active");
    assert_eq!(deployed.version, 1);
}

#[tokio::test]
async fn a_flow_reads_back_with_its_config_plan_and_drawing() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    let read = plane
        .flows()
        .get_flow(GetFlowRequest {
            id: flow.id.clone(),
        })
        .await
        .unwrap()
        .into_inner();
    assert!(read.config.unwrap().text.contains("order_id"));
    let plan = read.plan.unwrap().text;
    assert!(
        plan.contains("order_id") && !plan.contains("hunter2"),
        "{plan}"
    );
    for (format, begins) in [("mermaid", "flowchart"), ("dot", "digraph")] {
        let request = GetFlowPlanRequest {
            id: flow.id.clone(),
            format: Some(format.to_owned()),
            ..Default::default()
        };
        let text = plane
            .flows()
            .get_flow_plan(request)
            .await
            .unwrap()
            .into_inner()
            .text
            .unwrap();
        assert!(text.starts_with(begins), "{text}");
    }
    let request = GetFlowPlanRequest {
        id: flow.id,
        format: Some("png".to_owned()),
        ..Default::default()
    };
    let refused = plane.flows().get_flow_plan(request).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["format".to_owned()])
    );
}

#[tokio::test]
async fn what_a_call_cannot_do_without_is_named() {
    let plane = TestPlane::start().await;
    let id = create(&plane, ORDERS).await.id;
    let test = TestFlowRequest {
        id: id.clone(),
        ..Default::default()
    };
    let refused = plane.flows().test_flow(test).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["sampleData".to_owned()])
    );
    let rollback = RollbackFlowRequest {
        id,
        version_number: 0,
        ..Default::default()
    };
    let refused = plane.flows().rollback_flow(rollback).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["versionNumber".to_owned()])
    );
}
