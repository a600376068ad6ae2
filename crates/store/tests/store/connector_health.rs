//! How connector instances do, and the schemas of their endpoints.

use kanat_model::id::{HealthChangeId, InstanceId};
use kanat_model::page::Page;
use kanat_store::connector_health::{self, ConnectorHealth, HealthChange};
use kanat_store::connector_instance::{self, ConnectorInstance};
use kanat_store::endpoint_schema::{self, EndpointSchema};

use crate::{NOW, TestStore};

on_both_databases! {
    health_is_kept_with_its_newest_changes
    schemas_are_kept_by_endpoint
}

async fn instance(test: &TestStore) -> InstanceId {
    let row = ConnectorInstance {
        id: InstanceId::generate(),
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        catalog_id: "http".to_owned(),
        name: "erp".to_owned(),
        display_name: "ERP".to_owned(),
        config: vec![1],
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    let mut tx = test.store.begin().await.unwrap();
    connector_instance::insert(&mut tx, &row).await.unwrap();
    tx.commit().await.unwrap();
    row.id
}

async fn health_is_kept_with_its_newest_changes(test: TestStore) {
    let id = instance(&test).await;
    let mut tx = test.store.begin().await.unwrap();
    assert_eq!(connector_health::get(&mut tx, &id).await.unwrap(), None);
    let health = |status: &str| ConnectorHealth {
        instance_id: id.clone(),
        status: status.to_owned(),
        reason: "connection test".to_owned(),
        since: NOW,
        updated_at: NOW,
    };
    for status in ["healthy", "failing"] {
        connector_health::put(&mut tx, &health(status))
            .await
            .unwrap();
        assert_eq!(
            connector_health::get(&mut tx, &id).await.unwrap(),
            Some(health(status))
        );
    }
    let change = |status: &str| HealthChange {
        id: HealthChangeId::generate(),
        instance_id: id.clone(),
        previous: "unknown".to_owned(),
        status: status.to_owned(),
        reason: String::new(),
        at: NOW,
    };
    let changes: Vec<_> = ["a", "b", "c"].map(change).into();
    for change in &changes {
        connector_health::insert_change(&mut tx, change)
            .await
            .unwrap();
    }
    connector_health::keep_changes(&mut tx, &id, 2)
        .await
        .unwrap();
    let found = connector_health::list_changes(&mut tx, &id, Page::new(None, None))
        .await
        .unwrap();
    assert_eq!(found.items, vec![changes[2].clone(), changes[1].clone()]);
    assert_eq!(found.total, 2);
}

async fn schemas_are_kept_by_endpoint(test: TestStore) {
    let id = instance(&test).await;
    let mut row = EndpointSchema {
        instance_id: id.clone(),
        endpoint: "GET /orders".to_owned(),
        accepted: None,
        seen: "{}".to_owned(),
        samples: 1,
        first_seen_at: NOW,
        last_seen_at: NOW,
        checked_at: None,
    };
    let mut tx = test.store.begin().await.unwrap();
    endpoint_schema::put(&mut tx, &row).await.unwrap();
    assert_eq!(
        endpoint_schema::get(&mut tx, &id, "GET /orders")
            .await
            .unwrap(),
        Some(row.clone())
    );
    row = EndpointSchema {
        accepted: Some("{}".to_owned()),
        samples: 7,
        checked_at: Some(NOW),
        ..row
    };
    endpoint_schema::put(&mut tx, &row).await.unwrap();
    let found = endpoint_schema::list(&mut tx, &id, Page::new(None, None))
        .await
        .unwrap();
    assert_eq!(found.items, vec![row]);
    assert_eq!(found.total, 1);
    assert_eq!(
        endpoint_schema::get(&mut tx, &id, "GET /users")
            .await
            .unwrap(),
        None
    );
}
