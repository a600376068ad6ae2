//! Sealed values of all tables, for sealing them anew.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{ApiKeyId, BootId, FlowId, InstanceId};
use kanat_store::connector_instance::{self, ConnectorInstance};
use kanat_store::flow::{self, Flow};
use kanat_store::flow_version::{self, FlowVersion};
use kanat_store::oauth_start::{self, OauthStart};
use kanat_store::oauth_token::{self, OauthToken};
use kanat_store::sealed::{self, Column, Row, Value};
use kanat_store::{answered_request, published};

use crate::{NOW, TestStore};

on_both_databases! {
    values_of_every_column_are_listed_and_replaced_unless_they_changed
    values_come_page_by_page_in_the_order_of_their_rows
}

const FORMER: [u8; 7] = *b"old/..1";
const HEADER: &[u8] = b"new/";

async fn insert_flow(test: &TestStore, sealed: Option<Vec<u8>>) {
    let row = Flow {
        id: FlowId::generate(),
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        name: format!("orders-{}", sealed.is_some()),
        description: String::new(),
        status: Status::Draft,
        version: 0,
        trigger_kind: "webhook".to_owned(),
        yaml_config: String::new(),
        change_summary: String::new(),
        draft: true,
        sealed_config: sealed.clone(),
        webhook_token: sealed,
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    let mut tx = test.store.begin().await.unwrap();
    flow::insert(&mut tx, &row).await.unwrap();
    if row.sealed_config.is_some() {
        for (version, sealed) in [(1, *b"old/..v"), (2, FORMER)] {
            let version = FlowVersion {
                flow_id: row.id.clone(),
                version,
                yaml_config: String::new(),
                sealed_config: Some(sealed.to_vec()),
                change_summary: String::new(),
                created_at: NOW,
                created_by_type: None,
                created_by_id: None,
                created_by_name: String::new(),
            };
            flow_version::insert(&mut tx, &version).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
}

async fn insert_all(test: &TestStore) {
    insert_flow(test, Some(FORMER.to_vec())).await;
    insert_flow(test, None).await;
    let instance = ConnectorInstance {
        id: InstanceId::generate(),
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        catalog_id: "oauth2".to_owned(),
        name: "crm".to_owned(),
        display_name: "CRM".to_owned(),
        config: FORMER.to_vec(),
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    };
    let start = OauthStart {
        state_sha256: [0xab; 32],
        account_id: test.account.clone(),
        environment_id: test.environment.clone(),
        instance_id: instance.id.clone(),
        redirect_uri: String::new(),
        verifier: FORMER.to_vec(),
        expires_at: NOW.after(Duration::from_secs(60)),
    };
    let token = OauthToken {
        instance_id: instance.id.clone(),
        environment_id: test.environment.clone(),
        tokens: Some(FORMER.to_vec()),
        expires_at: None,
        refresh_at: None,
        failures: 0,
        refused: String::new(),
    };
    let mut tx = test.store.begin().await.unwrap();
    connector_instance::insert(&mut tx, &instance)
        .await
        .unwrap();
    oauth_start::insert(&mut tx, &start).await.unwrap();
    oauth_token::put(&mut tx, &token, NOW).await.unwrap();
    published::put(
        &mut tx,
        &test.environment,
        "flow/flw_1",
        [1; 32],
        FORMER.to_vec(),
    )
    .await
    .unwrap();
    published::put(
        &mut tx,
        &test.environment,
        "flow/flw_2",
        [2; 32],
        FORMER.to_vec(),
    )
    .await
    .unwrap();
    published::remove(&mut tx, &test.environment, "flow/flw_2")
        .await
        .unwrap();
    for (name, answer) in [("answered", Some(FORMER.as_slice())), ("running", None)] {
        let credential = ApiKeyId::from("key_1");
        answered_request::begin(
            &mut tx,
            credential.as_str(),
            name,
            &[0; 32],
            &BootId::from("boot_1"),
            NOW,
        )
        .await
        .unwrap();
        if let Some(answer) = answer {
            answered_request::answer(&mut tx, credential.as_str(), name, &[0; 32], answer)
                .await
                .unwrap();
        }
    }
    tx.commit().await.unwrap();
}

async fn values_of_every_column_are_listed_and_replaced_unless_they_changed(test: TestStore) {
    insert_all(&test).await;
    let mut tx = test.store.begin().await.unwrap();
    for column in Column::ALL {
        let found = sealed::page(&mut tx, column, &Row::default(), HEADER, 10)
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{column:?}: {found:?}");
        // The version that is the draft is replaced with it, and the other one is left.
        assert_eq!(
            found[0].sealed == FORMER,
            column != Column::Version,
            "{column:?}"
        );
        let other = Value {
            sealed: b"old/..2".to_vec(),
            ..found[0].clone()
        };
        assert!(
            !sealed::replace(&mut tx, column, &other, b"new/..2")
                .await
                .unwrap(),
            "{column:?}"
        );
        assert!(
            sealed::replace(&mut tx, column, &found[0], b"new/..1")
                .await
                .unwrap(),
            "{column:?}"
        );
        let left = sealed::page(&mut tx, column, &Row::default(), HEADER, 10)
            .await
            .unwrap();
        assert_eq!(left, [], "{column:?}");
        let anew = sealed::page(&mut tx, column, &Row::default(), b"x", 10)
            .await
            .unwrap();
        assert!(
            anew.iter().all(|value| value.sealed == b"new/..1"),
            "{column:?}"
        );
    }
    let ends_at = sealed::last_start_ends_at(&mut tx, NOW).await.unwrap();
    assert_eq!(ends_at, Some(NOW.after(Duration::from_secs(60))));
    assert_eq!(
        sealed::last_start_ends_at(&mut tx, Timestamp::from_millis(i64::MAX))
            .await
            .unwrap(),
        None
    );
    sealed::forget_former_answers(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
}

async fn values_come_page_by_page_in_the_order_of_their_rows(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    for n in 0..5 {
        let id = format!("flow/flw_{n}");
        published::put(&mut tx, &test.environment, &id, [n; 32], FORMER.to_vec())
            .await
            .unwrap();
    }
    let mut after = Row::default();
    let mut rows = Vec::new();
    loop {
        let page = sealed::page(&mut tx, Column::Published, &after, HEADER, 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = last.row.clone();
        rows.extend(page.into_iter().map(|value| value.row.second));
    }
    assert_eq!(
        rows,
        [
            "flow/flw_0",
            "flow/flw_1",
            "flow/flw_2",
            "flow/flw_3",
            "flow/flw_4"
        ]
    );
}
