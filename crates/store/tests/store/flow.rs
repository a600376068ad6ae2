//! Flows: names, revisions, pages, versions, what a deployed one uses.

use kanat_model::Timestamp;
use kanat_model::audit::PrincipalType;
use kanat_model::flow::Status;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::page::Page;
use kanat_store::flow::{Filter, Flow};
use kanat_store::flow_version::FlowVersion;
use kanat_store::{Db, Error, flow, flow_use, flow_version, webhook_token};

use crate::{NOW, TestStore};

on_both_databases! {
    a_name_is_taken_once_and_free_again_after_the_delete
    a_flow_comes_back_as_it_was_written_and_only_in_its_environment
    an_update_of_an_older_revision_is_refused
    lists_are_newest_first_filtered_and_cut_into_pages
    a_search_follows_the_texts_of_flows
    a_long_page_is_whole_and_in_order
    pages_at_both_ends_are_those_of_one_order
    versions_and_former_tokens_of_a_flow_are_kept
    what_a_deployed_flow_uses_is_known_until_it_is_deleted
}

impl TestStore {
    pub fn flow(&self, name: &str) -> Flow {
        Flow {
            id: FlowId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: "Orders into the ERP".to_owned(),
            status: Status::Draft,
            version: 0,
            trigger_kind: String::new(),
            yaml_config: "flow: x".to_owned(),
            sealed_config: None,
            change_summary: String::new(),
            draft: true,
            webhook_token: None,
            revision: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }
}

async fn a_name_is_taken_once_and_free_again_after_the_delete(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let first = test.flow("orders");
    flow::insert(&mut tx, &first).await.unwrap();
    let error = flow::insert(&mut tx, &test.flow("orders"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Taken { kind: "flow", .. }),
        "{error}"
    );
    // PostgreSQL ends a transaction with its first error.
    drop(tx);
    let mut tx = test.store.begin().await.unwrap();
    flow::insert(&mut tx, &first).await.unwrap();
    assert!(
        flow::delete(&mut tx, &test.environment, &first.id, NOW)
            .await
            .unwrap()
    );
    assert!(
        !flow::delete(&mut tx, &test.environment, &first.id, NOW)
            .await
            .unwrap()
    );
    assert_eq!(
        flow::get(&mut tx, &test.environment, &first.id)
            .await
            .unwrap(),
        None
    );
    flow::insert(&mut tx, &test.flow("orders")).await.unwrap();
}

async fn a_flow_comes_back_as_it_was_written_and_only_in_its_environment(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut row = test.flow("orders");
    flow::insert(&mut tx, &row).await.unwrap();
    row.status = Status::Active;
    row.version = 3;
    row.trigger_kind = "webhook".to_owned();
    row.webhook_token = Some(vec![0, 1, 255]);
    flow::update(&mut tx, &mut row).await.unwrap();
    assert_eq!(row.revision, 2);
    assert_eq!(
        flow::get(&mut tx, &test.environment, &row.id)
            .await
            .unwrap(),
        Some(row.clone())
    );
    assert_eq!(
        flow::get(&mut tx, &EnvironmentId::generate(), &row.id)
            .await
            .unwrap(),
        None
    );
}

async fn an_update_of_an_older_revision_is_refused(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut mine = test.flow("orders");
    flow::insert(&mut tx, &mine).await.unwrap();
    let mut theirs = mine.clone();
    flow::update(&mut tx, &mut theirs).await.unwrap();
    assert!(matches!(
        flow::update(&mut tx, &mut mine).await,
        Err(Error::Changed { .. })
    ));
}

async fn lists_are_newest_first_filtered_and_cut_into_pages(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    for name in ["a_1", "b", "c", "A%2"] {
        flow::insert(&mut tx, &test.flow(name)).await.unwrap();
    }
    let mut paused = test.flow("paused");
    paused.status = Status::Paused;
    paused.description = String::new();
    flow::insert(&mut tx, &paused).await.unwrap();

    let cases = [
        (
            Filter::default(),
            Page {
                limit: 2,
                offset: 1,
            },
            vec!["A%2", "c"],
            5,
        ),
        (
            Filter {
                status: Some(Status::Paused),
                ..Filter::default()
            },
            Page::new(None, None),
            vec!["paused"],
            1,
        ),
        (
            Filter {
                search: "a%".to_owned(),
                ..Filter::default()
            },
            Page::new(None, None),
            vec!["A%2"],
            1,
        ),
        (
            Filter {
                search: "A_".to_owned(),
                ..Filter::default()
            },
            Page::new(None, None),
            vec!["a_1"],
            1,
        ),
        (
            Filter {
                search: "erp".to_owned(),
                ..Filter::default()
            },
            Page {
                limit: 1,
                offset: 9,
            },
            vec![],
            4,
        ),
    ];
    for (filter, page, names, total) in cases {
        let found = flow::list(&mut tx, &test.environment, &filter, page)
            .await
            .unwrap();
        assert_eq!(
            found
                .items
                .iter()
                .map(|f| f.name.as_str())
                .collect::<Vec<_>>(),
            names,
            "{filter:?}"
        );
        assert_eq!(found.total, total, "{filter:?}");
    }
}

async fn found(db: &mut Db, test: &TestStore, search: &str, status: Option<Status>) -> Vec<String> {
    let filter = Filter {
        status,
        search: search.to_owned(),
    };
    let page = Page::new(None, None);
    let found = flow::list(db, &test.environment, &filter, page).await;
    let found = found.unwrap();
    assert_eq!(found.total, found.items.len() as u64, "{search}");
    found.items.into_iter().map(|flow| flow.name).collect()
}

async fn a_search_follows_the_texts_of_flows(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut orders = test.flow("Ölbestellung");
    orders.description = "An den ERP-Server".to_owned();
    flow::insert(&mut tx, &orders).await.unwrap();
    let mut other = test.flow("other");
    other.status = Status::Paused;
    other.description = "Ölstände".to_owned();
    flow::insert(&mut tx, &other).await.unwrap();

    assert_eq!(
        found(&mut tx, &test, "ÖL", None).await,
        ["other", "Ölbestellung"]
    );
    assert_eq!(
        found(&mut tx, &test, "öl", Some(Status::Paused)).await,
        ["other"]
    );
    assert_eq!(found(&mut tx, &test, "erp-s", None).await, ["Ölbestellung"]);
    assert_eq!(
        found(&mut tx, &test, "bestellungan", None).await,
        [""; 0],
        "name and description are apart"
    );

    orders.name = "Lager".to_owned();
    flow::update(&mut tx, &mut orders).await.unwrap();
    assert_eq!(found(&mut tx, &test, "öl", None).await, ["other"]);
    assert_eq!(found(&mut tx, &test, "LAG", None).await, ["Lager"]);

    flow::delete(&mut tx, &test.environment, &orders.id, NOW)
        .await
        .unwrap();
    assert_eq!(found(&mut tx, &test, "lag", None).await, [""; 0]);
    assert_eq!(found(&mut tx, &test, "", None).await, ["other"]);
}

async fn a_long_page_is_whole_and_in_order(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let names: Vec<String> = (0..130).map(|n| format!("flow{n}")).collect();
    for name in &names {
        flow::insert(&mut tx, &test.flow(name)).await.unwrap();
    }
    let page = Page {
        limit: 120,
        offset: 5,
    };
    let found = flow::list(&mut tx, &test.environment, &Filter::default(), page).await;
    let found = found.unwrap();
    let newest_first = found.items.iter().rev().map(|flow| &flow.name);
    assert!(newest_first.eq(&names[5..125]));
    assert_eq!(found.total, 130);
}

async fn pages_at_both_ends_are_those_of_one_order(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    for n in 0..10 {
        flow::insert(&mut tx, &test.flow(&format!("flow{n}")))
            .await
            .unwrap();
    }
    for search in ["", "low"] {
        let filter = Filter {
            search: search.to_owned(),
            ..Filter::default()
        };
        for (limit, offset, numbers) in [
            (3, 0, &[9, 8, 7][..]),
            (10, 0, &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
            (3, 6, &[3, 2, 1]),
            (3, 8, &[1, 0]),
            (20, 1, &[8, 7, 6, 5, 4, 3, 2, 1, 0]),
            (3, 10, &[]),
            (3, u32::MAX, &[]),
        ] {
            let page = Page { limit, offset };
            let found = flow::list(&mut tx, &test.environment, &filter, page).await;
            let found = found.unwrap();
            let names = found.items.iter().map(|flow| flow.name.clone());
            let expected = numbers.iter().map(|n| format!("flow{n}"));
            assert!(names.eq(expected), "{limit} after {offset} with {search:?}");
            assert_eq!(found.total, 10);
        }
    }
}

async fn versions_and_former_tokens_of_a_flow_are_kept(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let row = test.flow("orders");
    flow::insert(&mut tx, &row).await.unwrap();
    for version in 1..=3 {
        let version = FlowVersion {
            flow_id: row.id.clone(),
            version,
            yaml_config: format!("version: {version}"),
            sealed_config: None,
            change_summary: String::new(),
            created_at: NOW,
            created_by_type: Some(PrincipalType::ApiKey),
            created_by_id: Some("key_1".to_owned()),
            created_by_name: "key".to_owned(),
        };
        flow_version::insert(&mut tx, &version).await.unwrap();
    }
    let page = flow_version::list(
        &mut tx,
        &row.id,
        Page {
            limit: 2,
            offset: 0,
        },
    )
    .await
    .unwrap();
    assert_eq!(
        page.items.iter().map(|v| v.version).collect::<Vec<_>>(),
        [3, 2]
    );
    assert_eq!(page.total, 3);
    let first = flow_version::get(&mut tx, &row.id, 1).await.unwrap();
    let first = first.unwrap();
    assert_eq!(first.yaml_config, "version: 1");
    assert_eq!(first.created_by_type, Some(PrincipalType::ApiKey));
    assert_eq!(first.created_by_id.as_deref(), Some("key_1"));
    assert_eq!(first.created_by_name, "key");
    assert_eq!(flow_version::get(&mut tx, &row.id, 4).await.unwrap(), None);

    let former = |hash, millis| webhook_token::Former {
        sha256: [hash; 32],
        expires_at: Timestamp::from_millis(millis),
    };
    webhook_token::insert(&mut tx, &row.id, &former(1, 10))
        .await
        .unwrap();
    webhook_token::insert(&mut tx, &row.id, &former(2, 20))
        .await
        .unwrap();
    let at = Timestamp::from_millis(10);
    assert_eq!(
        webhook_token::list(&mut tx, &row.id, at).await.unwrap(),
        [former(2, 20)]
    );
    webhook_token::delete_expired(&mut tx, &row.id, at)
        .await
        .unwrap();
    let all = webhook_token::list(&mut tx, &row.id, Timestamp::from_millis(0))
        .await
        .unwrap();
    assert_eq!(all, [former(2, 20)]);
}

async fn what_a_deployed_flow_uses_is_known_until_it_is_deleted(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let row = test.flow("orders");
    flow::insert(&mut tx, &row).await.unwrap();
    let uses = [
        "lookup_table/lt_1".to_owned(),
        "lookup_table/lt_1".to_owned(),
        "connector_instance/ci_1".to_owned(),
    ];
    flow_use::replace(&mut tx, &row.id, 1, &uses).await.unwrap();
    assert_eq!(
        flow_use::users(&mut tx, "lookup_table/lt_1").await.unwrap(),
        ["orders"]
    );
    flow_use::replace(&mut tx, &row.id, 2, &uses[2..])
        .await
        .unwrap();
    let former = flow_use::former(&mut tx, "lookup_table/lt_1")
        .await
        .unwrap();
    assert_eq!(former.len(), 1);
    assert_eq!(former[0].name, "orders");
    assert_eq!(former[0].last_version, 1);
    assert!(
        flow_use::users(&mut tx, "lookup_table/lt_1")
            .await
            .unwrap()
            .is_empty()
    );
    flow::delete(&mut tx, &test.environment, &row.id, NOW)
        .await
        .unwrap();
    assert!(
        flow_use::users(&mut tx, "connector_instance/ci_1")
            .await
            .unwrap()
            .is_empty()
    );
    let former = flow_use::former(&mut tx, "lookup_table/lt_1").await;
    assert!(former.unwrap().is_empty());
}
