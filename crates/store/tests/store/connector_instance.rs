//! Connector instances.

use kanat_model::id::InstanceId;
use kanat_model::page::Page;
use kanat_store::connector_instance::{self, ConnectorInstance};

use crate::{NOW, TestStore};

on_both_databases! {
    instances_are_found_by_entry_and_changed_by_revision
}

async fn instances_are_found_by_entry_and_changed_by_revision(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut row = ConnectorInstance {
        id: InstanceId::generate(),
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        catalog_id: "http".to_owned(),
        name: "erp".to_owned(),
        display_name: "The ERP".to_owned(),
        config: vec![1, 2, 3],
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    connector_instance::insert(&mut tx, &row).await.unwrap();
    row.config = vec![4];
    connector_instance::update(&mut tx, &mut row).await.unwrap();
    assert_eq!(
        connector_instance::get(&mut tx, &test.environment, &row.id)
            .await
            .unwrap(),
        Some(row.clone())
    );
    let filter = connector_instance::Filter {
        catalog_id: "other".to_owned(),
        search: String::new(),
    };
    let page = Page::new(None, None);
    assert_eq!(
        connector_instance::list(&mut tx, &test.environment, &filter, page)
            .await
            .unwrap()
            .total,
        0
    );
    let filter = connector_instance::Filter {
        catalog_id: "http".to_owned(),
        search: "THE".to_owned(),
    };
    let found = connector_instance::list(&mut tx, &test.environment, &filter, page)
        .await
        .unwrap();
    assert_eq!(found.items, [row.clone()]);
    assert_eq!(
        connector_instance::names(&mut tx, &test.environment)
            .await
            .unwrap()[0]
            .name,
        "erp"
    );
    assert!(
        connector_instance::delete(&mut tx, &test.environment, &row.id, NOW)
            .await
            .unwrap()
    );
    assert!(
        connector_instance::names(&mut tx, &test.environment)
            .await
            .unwrap()
            .is_empty()
    );
}
