//! Environments: their settings, what is in them, and their end.

use kanat_model::environment::Promoters;
use kanat_model::id::EnvironmentId;
use kanat_model::page::Page;
use kanat_store::environment::{self, Environment};
use kanat_store::{Db, flow, lookup_table};

use crate::{NOW, TestStore};

on_both_databases! {
    settings_are_kept
    what_is_in_an_environment_is_counted
    a_deleted_environment_frees_its_name_and_is_read_no_more
}

impl TestStore {
    /// Makes another environment of this name.
    async fn another_environment(&self, db: &mut Db, name: &str) -> Environment {
        let here = environment::default(db, &self.account).await.unwrap();
        let made = Environment {
            id: EnvironmentId::generate(),
            name: name.to_owned(),
            is_default: false,
            base_url: Some(format!("https://{name}.example")),
            ..here.unwrap()
        };
        environment::insert(db, &made).await.unwrap();
        made
    }

    /// Numbers above 0 of what is in an environment.
    async fn contents(&self, db: &mut Db, environment: &EnvironmentId) -> Vec<(String, u64)> {
        let mut contents = environment::contents(db, environment).await.unwrap();
        contents.retain(|(_, total)| *total > 0);
        contents
    }
}

async fn settings_are_kept(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut canary = test.another_environment(&mut tx, "canary").await;
    canary.is_protected = true;
    canary.promoters = Promoters::Admin;
    canary.variables = [("REGION".to_owned(), "eu-1".to_owned())].into();
    canary.retention_days = Some(7);
    environment::update(&mut tx, &mut canary).await.unwrap();
    let found = environment::find(&mut tx, &test.account, "canary").await;
    assert_eq!(found.unwrap(), Some(canary.clone()));
    let variables = environment::variables(&mut tx, &canary.id).await;
    assert_eq!(variables.unwrap().as_ref(), Some(&canary.variables));
    canary.retention_days = None;
    environment::update(&mut tx, &mut canary).await.unwrap();
    let found = environment::find(&mut tx, &test.account, "canary").await;
    assert_eq!(found.unwrap(), Some(canary));
}

async fn what_is_in_an_environment_is_counted(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let canary = test.another_environment(&mut tx, "canary").await;
    let orders = test.flow("orders");
    flow::insert(&mut tx, &orders).await.unwrap();
    let table = test.table("countries");
    lookup_table::insert(&mut tx, &table).await.unwrap();
    let here = &test.environment;
    let both = [("flows".to_owned(), 1), ("lookup tables".to_owned(), 1)];
    assert_eq!(test.contents(&mut tx, here).await, both);
    assert_eq!(test.contents(&mut tx, &canary.id).await, []);
    flow::delete(&mut tx, here, &orders.id, NOW).await.unwrap();
    // The messages of a deleted flow stay for their time.
    assert_eq!(flow::ids(&mut tx, here).await.unwrap(), [orders.id]);
    lookup_table::delete(&mut tx, here, &table.id, NOW)
        .await
        .unwrap();
    assert_eq!(test.contents(&mut tx, here).await, []);
}

async fn a_deleted_environment_frees_its_name_and_is_read_no_more(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let canary = test.another_environment(&mut tx, "canary").await;
    environment::delete(&mut tx, &canary.id, NOW).await.unwrap();
    for name in ["canary", canary.id.as_str()] {
        let found = environment::find(&mut tx, &test.account, name).await;
        assert_eq!(found.unwrap(), None, "{name}");
    }
    let page = Page {
        limit: 10,
        offset: 0,
    };
    let list = environment::list(&mut tx, &test.account, "", page).await;
    assert_eq!(list.unwrap().total, 1);
    assert_eq!(environment::all(&mut tx).await.unwrap().len(), 1);
    let again = test.another_environment(&mut tx, "canary").await;
    assert_ne!(again.id, canary.id);
}
