//! Connector instances: secrets go in and do not come out.

use kanat_proto::v1::{
    ConnectorInstance, CreateConnectorInstanceRequest, DeleteConnectorInstanceRequest,
    GetCatalogEntryRequest, GetConnectorInstanceRequest, Json, ListCatalogEntriesRequest,
    ListConnectorInstancesRequest, UpdateConnectorInstanceRequest,
};
use tonic::Code;

use crate::plane::{TestPlane, faults};

fn json(text: &str) -> Option<Json> {
    Some(Json {
        text: text.to_owned(),
    })
}

async fn get(plane: &TestPlane, id: &str) -> ConnectorInstance {
    let request = GetConnectorInstanceRequest { id: id.to_owned() };
    plane
        .connectors()
        .get_connector_instance(request)
        .await
        .unwrap()
        .into_inner()
}

async fn update(
    plane: &TestPlane,
    id: &str,
    config: &str,
) -> Result<ConnectorInstance, tonic::Status> {
    let request = UpdateConnectorInstanceRequest {
        id: id.to_owned(),
        config: json(config),
        ..Default::default()
    };
    plane
        .connectors()
        .update_connector_instance(request)
        .await
        .map(tonic::Response::into_inner)
}

#[tokio::test]
async fn secrets_are_written_and_never_read() {
    let plane = TestPlane::start().await;
    let id = plane.http_instance("erp").await;
    let shown = get(&plane, &id).await;
    let config = shown.config.unwrap().text;
    assert_eq!(
        config,
        r#"{"base_url":"http://127.0.0.1:9","auth":"bearer","token":"********"}"#
    );
    // What was shown may be sent back, and changes nothing but what differs.
    let sent_back = config.replace(":9", ":9/v2");
    let updated = update(&plane, &id, &sent_back).await.unwrap();
    assert_eq!(updated.config.unwrap().text, sent_back);
    assert_ne!(updated.etag, shown.etag);
    // The secret is still there: without one, the config would be refused.
    let refused = update(&plane, &id, r#"{"token": null}"#).await.unwrap_err();
    assert_eq!(
        faults(&refused),
        (Code::InvalidArgument, vec!["config.token".to_owned()])
    );
    let listed = plane
        .connectors()
        .list_connector_instances(ListConnectorInstancesRequest::default())
        .await
        .unwrap();
    assert!(!format!("{listed:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_config_that_does_not_fit_names_every_field() {
    let plane = TestPlane::start().await;
    let new = |catalog_id: &str, config: &str| CreateConnectorInstanceRequest {
        catalog_id: catalog_id.to_owned(),
        name: "erp".to_owned(),
        display_name: None,
        config: json(config),
    };
    for (request, fields) in [
        (
            new("http", r#"{"base_url": "ftp://x", "colour": 1}"#),
            vec!["config.colour", "config.base_url"],
        ),
        (new("http", "[]"), vec!["config"]),
        (new("nothing", "{}"), vec!["catalogId"]),
    ] {
        let refused = plane
            .connectors()
            .create_connector_instance(request)
            .await
            .unwrap_err();
        assert_eq!(
            faults(&refused),
            (
                Code::InvalidArgument,
                fields.into_iter().map(str::to_owned).collect()
            )
        );
    }
}

#[tokio::test]
async fn names_are_unique_and_deleted_instances_are_gone() {
    let plane = TestPlane::start().await;
    let id = plane.http_instance("erp").await;
    let other = plane.http_instance("shop").await;
    let request = UpdateConnectorInstanceRequest {
        id: other,
        name: Some("erp".to_owned()),
        ..Default::default()
    };
    let refused = plane
        .connectors()
        .update_connector_instance(request)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    let delete = DeleteConnectorInstanceRequest { id: id.clone() };
    plane
        .connectors()
        .delete_connector_instance(delete.clone())
        .await
        .unwrap();
    assert_eq!(
        plane
            .connectors()
            .delete_connector_instance(delete)
            .await
            .unwrap_err()
            .code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn the_catalog_can_be_searched() {
    let plane = TestPlane::start().await;
    let request = ListCatalogEntriesRequest {
        search: Some("HTTP".to_owned()),
        ..Default::default()
    };
    let found = plane
        .connectors()
        .list_catalog_entries(request)
        .await
        .unwrap()
        .into_inner();
    assert!(found.data.iter().any(|entry| entry.id == "http"));
    let missing = GetCatalogEntryRequest {
        catalog_id: "nothing".to_owned(),
    };
    assert_eq!(
        plane
            .connectors()
            .get_catalog_entry(missing)
            .await
            .unwrap_err()
            .code(),
        Code::NotFound
    );
}
