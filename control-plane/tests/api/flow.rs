//! Flows from a draft to a deployed version, and back.

mod deploy;

use futures::future::join_all;
use futures::join;
use kanat_message_log::{Filter, Position};
use kanat_model::message::Status as MessageStatus;
use kanat_model::page::Page;
use kanat_proto::v1::{
    CreateFlowRequest, CreateLookupTableRequest, DeleteConnectorInstanceRequest, DeleteFlowRequest,
    DeleteLookupTableRequest, DeployFlowRequest, Flow, Json, ListFlowVersionsRequest,
    RollbackFlowRequest, RunFlowRequest, SetLookupEntryRequest, TestFlowRequest, UpdateFlowRequest,
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

#[tokio::test]
async fn a_name_that_is_not_that_of_the_definition_is_a_warning() {
    let plane = TestPlane::start().await;
    surroundings(&plane).await;
    let flow = create(&plane, ORDERS).await;
    assert_eq!(flow.warnings, []);
    let request = UpdateFlowRequest {
        id: flow.id,
        name: Some("zz".to_owned()),
        ..Default::default()
    };
    let renamed = plane.flows().update_flow(request).await.unwrap();
    let warnings = renamed.into_inner().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(&warnings[0].path, "flow");
    let message = &warnings[0].message;
    assert!(
        message.starts_with("found \"orders\", and the flow is named \"zz\""),
        "{message}"
    );
}

/// Makes the resources that `ORDERS` names; returns the ids of the instance and of the table.
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
