//! The words of resources, and what is found by them.

use kanat_model::adapter;
use kanat_model::id::{AdapterId, EnvironmentId, FlowId, InstanceId};
use kanat_model::search::{Kind, words};
use kanat_store::adapter::Adapter;
use kanat_store::connector_instance::ConnectorInstance;
use kanat_store::flow::UnsealedDefinition;
use kanat_store::search_entry::{self, SearchEntry};
use kanat_store::{Db, connector_instance, environment, flow, lookup_table, published_api};

use crate::{NOW, TestStore};

on_both_databases! {
    each_kind_is_found_by_the_beginnings_of_its_words
    an_entry_is_what_its_resource_is
    environments_do_not_see_each_other
    queries_of_any_length_are_answered
    names_come_first_where_there_are_many
    an_entry_is_found_however_many_are_newer
}

impl TestStore {
    fn adapter(&self, name: &str, code: &str) -> Adapter {
        Adapter {
            id: AdapterId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            kind: adapter::Kind::Transform,
            code: code.to_owned(),
            version: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    fn instance(&self, name: &str) -> ConnectorInstance {
        ConnectorInstance {
            id: InstanceId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            catalog_id: "support-ticketing".to_owned(),
            name: name.to_owned(),
            display_name: "The help desk".to_owned(),
            config: b"confidential".to_vec(),
            revision: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    /// Names of what is found by the words of a query, in order.
    async fn found(&self, db: &mut Db, query: &str) -> Vec<String> {
        let found = self.entries(db, None, query).await;
        let mut names: Vec<String> = found.into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }

    async fn entries(&self, db: &mut Db, kind: Option<Kind>, query: &str) -> Vec<SearchEntry> {
        let words: Vec<String> = words(query).map(|word| word.normalized).collect();
        search_entry::find(db, &self.environment, kind, &words)
            .await
            .unwrap()
    }
}

async fn each_kind_is_found_by_the_beginnings_of_its_words(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut orders = test.flow("Größe der Bestellung");
    orders.yaml_config = "target:\n  endpoint: https://erp.example/albatross/in".to_owned();
    flow::insert(&mut tx, &orders).await.unwrap();
    let adapter = test.adapter("sum", "return input.albatrosses + 1");
    kanat_store::adapter::insert(&mut tx, &adapter)
        .await
        .unwrap();
    let instance = test.instance("desk");
    connector_instance::insert(&mut tx, &instance)
        .await
        .unwrap();
    let api = test.api("quotes", "walrus/{}");
    published_api::insert(&mut tx, &api).await.unwrap();
    let table = test.table("countries-by-code");
    lookup_table::insert(&mut tx, &table).await.unwrap();

    for (query, names) in [
        ("grosse", vec!["Größe der Bestellung"]),
        ("GRÖẞE bestell", vec!["Größe der Bestellung"]),
        ("erp orders", vec!["Größe der Bestellung"]),
        ("albat", vec!["Größe der Bestellung", "sum"]),
        ("albatross in", vec!["Größe der Bestellung", "sum"]),
        ("albatrossen", vec![]),
        ("batross", vec![]),
        ("help ticket", vec!["desk"]),
        ("confidential", vec![]),
        ("walr", vec!["quotes"]),
        ("code coun", vec!["countries-by-code"]),
        ("i", vec!["Größe der Bestellung", "quotes", "sum"]),
    ] {
        assert_eq!(test.found(&mut tx, query).await, names, "{query}");
    }
    let found = test
        .entries(&mut tx, Some(Kind::Adapter), "albatross")
        .await;
    let entry = SearchEntry {
        id: adapter.id.to_string(),
        kind: Kind::Adapter,
        name: "sum".to_owned(),
        description: String::new(),
    };
    assert_eq!(found, [entry]);

    let mut contents = Vec::new();
    let ids = [adapter.id.as_str(), api.id.as_str(), "flw_unknown"];
    search_entry::read_contents(&mut tx, &test.environment, &ids, |id, content| {
        contents.push((id.to_owned(), content.to_owned()));
    })
    .await
    .unwrap();
    contents.sort();
    let expected = [
        (adapter.id.to_string(), adapter.code.clone()),
        (api.id.to_string(), api.path.clone()),
    ];
    assert_eq!(contents, expected);
}

async fn an_entry_is_what_its_resource_is(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut orders = test.flow("orders");
    orders.yaml_config = "token: hunter2".to_owned();
    flow::insert(&mut tx, &orders).await.unwrap();
    assert_eq!(test.found(&mut tx, "hunter2").await, ["orders"]);
    let plain = UnsealedDefinition {
        flow_id: orders.id.clone(),
        version: 0,
        yaml_config: orders.yaml_config.clone(),
    };
    flow::seal(&mut tx, &plain, "token: \"********\"", b"sealed")
        .await
        .unwrap();
    assert_eq!(test.found(&mut tx, "hunter2").await, [""; 0]);
    assert_eq!(test.found(&mut tx, "token").await, ["orders"]);

    orders.name = "invoices".to_owned();
    orders.yaml_config = "flow: invoices".to_owned();
    flow::update(&mut tx, &mut orders).await.unwrap();
    assert_eq!(test.found(&mut tx, "token").await, [""; 0]);
    assert_eq!(test.found(&mut tx, "invoices").await, ["invoices"]);
    // As it was: nothing is written.
    flow::update(&mut tx, &mut orders).await.unwrap();
    assert_eq!(test.found(&mut tx, "invoices").await, ["invoices"]);
    tx.commit().await.unwrap();

    let mut tx = test.store.begin().await.unwrap();
    flow::delete(&mut tx, &test.environment, &orders.id, NOW)
        .await
        .unwrap();
    assert_eq!(test.found(&mut tx, "invoices").await, [""; 0]);
    drop(tx);
    let mut tx = test.store.read().await.unwrap();
    assert_eq!(test.found(&mut tx, "invoices").await, ["invoices"]);
}

async fn environments_do_not_see_each_other(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let here = environment::default(&mut tx, &test.account)
        .await
        .unwrap()
        .unwrap();
    let there = environment::Environment {
        id: EnvironmentId::generate(),
        name: "production".to_owned(),
        is_default: false,
        ..here
    };
    environment::insert(&mut tx, &there).await.unwrap();
    let mut other = test.flow("orders of production");
    other.environment_id = there.id;
    flow::insert(&mut tx, &other).await.unwrap();
    flow::insert(&mut tx, &test.flow("orders")).await.unwrap();
    assert_eq!(test.found(&mut tx, "orders").await, ["orders"]);
    let unknown = EnvironmentId::new(format!("{}0", test.environment));
    let words = ["orders".to_owned()];
    let found = search_entry::find(&mut tx, &unknown, None, &words).await;
    assert_eq!(found.unwrap(), []);
    let ids = [other.id.as_str()];
    search_entry::read_contents(&mut tx, &test.environment, &ids, |id, _| {
        panic!("{id} is of another environment")
    })
    .await
    .unwrap();
}

async fn queries_of_any_length_are_answered(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let letters: Vec<String> = ('a'..='z').map(|c| format!("{c}{c}{c}{c}")).collect();
    let mut all = test.flow("letters");
    all.yaml_config = letters.join(" ");
    flow::insert(&mut tx, &all).await.unwrap();
    let mut large = test.flow("large");
    large.yaml_config = (0..200_000).map(|n| format!("word{n} ")).collect();
    flow::insert(&mut tx, &large).await.unwrap();
    assert_eq!(test.found(&mut tx, &letters.join(" ")).await, ["letters"]);
    let single: Vec<String> = ('a'..='z').map(String::from).collect();
    assert_eq!(test.found(&mut tx, &single.join(" ")).await, ["letters"]);
    assert_eq!(test.found(&mut tx, "word12").await, ["large"]);
    assert_eq!(test.found(&mut tx, "word0 word1 wor").await, ["large"]);
    assert_eq!(test.found(&mut tx, &"ä".repeat(500)).await, [""; 0]);
}

async fn names_come_first_where_there_are_many(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut insert = async |name: &str, description: &str| {
        let mut row = test.flow(name);
        row.id = FlowId::generate();
        row.description = description.to_owned();
        row.yaml_config = "flow: common".to_owned();
        flow::insert(&mut tx, &row).await.unwrap();
    };
    insert("common", "").await;
    insert("common flow", "").await;
    insert("described", "what is common").await;
    for n in 0..search_entry::MAX_FOUND {
        insert(&format!("flow {n}"), "").await;
    }
    for (query, first) in [
        ("common", vec!["common", "common flow", "described"]),
        ("comm flow", vec!["common flow"]),
    ] {
        let found = test.entries(&mut tx, None, query).await;
        assert!(found.len() >= 1_000, "{}", found.len());
        let names: Vec<&str> = found.iter().map(|entry| &*entry.name).collect();
        for name in first {
            assert!(names.contains(&name), "{query} finds {name}");
        }
    }
}

async fn an_entry_is_found_however_many_are_newer(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut insert = async |name: &str, description: &str| {
        let mut row = test.flow(name);
        row.id = FlowId::generate();
        row.description = description.to_owned();
        row.yaml_config = String::new();
        flow::insert(&mut tx, &row).await.unwrap();
    };
    insert("first", "").await;
    insert("newer", "").await;
    for n in 0..search_entry::NEWEST {
        insert(&format!("flow {n}"), "newer").await;
    }
    assert_eq!(test.found(&mut tx, "first").await, ["first"]);
    let found = test.found(&mut tx, "newer").await;
    assert!(found.len() >= 1_000, "{}", found.len());
    assert!(found.iter().any(|name| name == "newer"));
}
