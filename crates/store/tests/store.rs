//! The store on a real file and on a real PostgreSQL, by the same tests: names, revisions, pages, generations.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so where it stands")]

use kanat_model::Timestamp;
use kanat_model::flow::Status;
use kanat_model::id::{AccountId, ApiKeyId, BootId, EnvironmentId, FlowId, InstanceId, LookupTableId, NodeId};
use kanat_model::page::Page;
use kanat_store::account::Account;
use kanat_store::api_key::ApiKey;
use kanat_store::connector_instance::ConnectorInstance;
use kanat_store::environment::Environment;
use kanat_store::flow::{Filter, Flow};
use kanat_store::flow_version::FlowVersion;
use kanat_store::lookup_table::LookupTable;
use kanat_store::lookup_table::entry::Entry;
use kanat_store::node::{Node, Running};
use kanat_store::{
    Error, Store, account, api_key, connector_instance, environment, flow, flow_use, flow_version, lookup_table, meta,
    node, periodic_task, published, webhook_token,
};
use kanat_testing_postgres::Database;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

struct TestStore {
    store: Store,
    account: AccountId,
    environment: EnvironmentId,
    _place: Place,
}

/// Where it is; gone with it.
enum Place {
    Folder(#[expect(dead_code, reason = "kept for its end")] tempfile::TempDir),
    Database(#[expect(dead_code, reason = "kept for its end")] Database),
}

/// Every test, on SQLite and on PostgreSQL.
macro_rules! on_both_databases {
    ($($test:ident)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::TestStore::in_a_file().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::TestStore::in_postgres().await).await;
            })*
        }
    };
}

on_both_databases! {
    a_name_is_taken_once_and_free_again_after_the_delete
    a_flow_comes_back_as_it_was_written_and_only_in_its_environment
    an_update_of_an_older_revision_is_refused
    lists_are_newest_first_filtered_and_cut_into_pages
    versions_and_former_tokens_of_a_flow_are_kept
    what_a_deployed_flow_uses_is_known_until_it_is_deleted
    entries_are_counted_and_ordered_by_key
    instances_are_found_by_entry_and_changed_by_revision
    every_change_of_what_nodes_run_has_its_own_generation
    a_reader_sees_one_state_while_another_writes
    concurrent_writers_wait_for_each_other
    a_key_is_found_by_its_hash_until_it_is_revoked
    a_node_is_remembered_as_it_was_last_seen
    a_periodic_task_is_taken_up_once_for_each_due_time
}

impl TestStore {
    async fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db")).await.unwrap();
        Self::fill(store, Place::Folder(folder)).await
    }

    async fn in_postgres() -> Self {
        let database = Database::fresh();
        let store = Store::open(database.url()).await.unwrap();
        Self::fill(store, Place::Database(database)).await
    }

    async fn fill(store: Store, place: Place) -> Self {
        let account = AccountId::generate();
        let environment = EnvironmentId::generate();
        let mut tx = store.begin().await.unwrap();
        let row = Account { id: account.clone(), name: "default".to_owned(), created_at: NOW };
        account::insert(&mut tx, &row).await.unwrap();
        assert_eq!(account::first(&mut tx).await.unwrap(), Some(row));
        let row = Environment {
            id: environment.clone(),
            account_id: account.clone(),
            name: "development".to_owned(),
            is_default: true,
            generation: 0,
            created_at: NOW,
        };
        environment::insert(&mut tx, &row).await.unwrap();
        assert_eq!(environment::find(&mut tx, &account, "development").await.unwrap(), Some(row.clone()));
        assert_eq!(environment::default(&mut tx, &account).await.unwrap(), Some(row));
        tx.commit().await.unwrap();
        Self { store, account, environment, _place: place }
    }

    fn flow(&self, name: &str) -> Flow {
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
            change_summary: String::new(),
            webhook_token: None,
            revision: 1,
            created_at: NOW,
            updated_at: NOW,
        }
    }

    fn table(&self, name: &str) -> LookupTable {
        LookupTable {
            id: LookupTableId::generate(),
            account_id: self.account.clone(),
            environment_id: self.environment.clone(),
            name: name.to_owned(),
            description: String::new(),
            version: 1,
            entries_count: 0,
            created_at: NOW,
            updated_at: NOW,
        }
    }
}

fn entry(key: &str, value: &str) -> Entry {
    Entry { key: key.to_owned(), value: value.to_owned() }
}

async fn a_name_is_taken_once_and_free_again_after_the_delete(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let first = test.flow("orders");
    flow::insert(&mut tx, &first).await.unwrap();
    let error = flow::insert(&mut tx, &test.flow("orders")).await.unwrap_err();
    assert!(matches!(error, Error::Taken { kind: "flow", .. }), "{error}");
    // PostgreSQL ends a transaction with its first error.
    drop(tx);
    let mut tx = test.store.begin().await.unwrap();
    flow::insert(&mut tx, &first).await.unwrap();
    assert!(flow::delete(&mut tx, &test.environment, &first.id, NOW).await.unwrap());
    assert!(!flow::delete(&mut tx, &test.environment, &first.id, NOW).await.unwrap());
    assert_eq!(flow::get(&mut tx, &test.environment, &first.id).await.unwrap(), None);
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
    assert_eq!(flow::get(&mut tx, &test.environment, &row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(flow::get(&mut tx, &EnvironmentId::generate(), &row.id).await.unwrap(), None);
}

async fn an_update_of_an_older_revision_is_refused(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let mut mine = test.flow("orders");
    flow::insert(&mut tx, &mine).await.unwrap();
    let mut theirs = mine.clone();
    flow::update(&mut tx, &mut theirs).await.unwrap();
    assert!(matches!(flow::update(&mut tx, &mut mine).await, Err(Error::Changed { .. })));
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
        (Filter::default(), Page { limit: 2, offset: 1 }, vec!["A%2", "c"], 5),
        (Filter { status: Some(Status::Paused), ..Filter::default() }, Page::new(None, None), vec!["paused"], 1),
        (Filter { search: "a%".to_owned(), ..Filter::default() }, Page::new(None, None), vec!["A%2"], 1),
        (Filter { search: "A_".to_owned(), ..Filter::default() }, Page::new(None, None), vec!["a_1"], 1),
        (Filter { search: "erp".to_owned(), ..Filter::default() }, Page { limit: 1, offset: 9 }, vec![], 4),
    ];
    for (filter, page, names, total) in cases {
        let found = flow::list(&mut tx, &test.environment, &filter, page).await.unwrap();
        assert_eq!(found.items.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), names, "{filter:?}");
        assert_eq!(found.total, total, "{filter:?}");
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
            change_summary: String::new(),
            created_at: NOW,
            created_by: "key".to_owned(),
        };
        flow_version::insert(&mut tx, &version).await.unwrap();
    }
    let page = flow_version::list(&mut tx, &row.id, Page { limit: 2, offset: 0 }).await.unwrap();
    assert_eq!(page.items.iter().map(|v| v.version).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(page.total, 3);
    assert_eq!(flow_version::get(&mut tx, &row.id, 1).await.unwrap().unwrap().yaml_config, "version: 1");
    assert_eq!(flow_version::get(&mut tx, &row.id, 4).await.unwrap(), None);

    let former =
        |hash, millis| webhook_token::Former { sha256: [hash; 32], expires_at: Timestamp::from_millis(millis) };
    webhook_token::insert(&mut tx, &row.id, &former(1, 10)).await.unwrap();
    webhook_token::insert(&mut tx, &row.id, &former(2, 20)).await.unwrap();
    let at = Timestamp::from_millis(10);
    assert_eq!(webhook_token::list(&mut tx, &row.id, at).await.unwrap(), [former(2, 20)]);
    webhook_token::delete_expired(&mut tx, &row.id, at).await.unwrap();
    let all = webhook_token::list(&mut tx, &row.id, Timestamp::from_millis(0)).await.unwrap();
    assert_eq!(all, [former(2, 20)]);
}

async fn what_a_deployed_flow_uses_is_known_until_it_is_deleted(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let row = test.flow("orders");
    flow::insert(&mut tx, &row).await.unwrap();
    let uses = ["lookup_table/lt_1".to_owned(), "lookup_table/lt_1".to_owned(), "connector_instance/ci_1".to_owned()];
    flow_use::replace(&mut tx, &row.id, &uses).await.unwrap();
    assert_eq!(flow_use::users(&mut tx, "lookup_table/lt_1").await.unwrap(), ["orders"]);
    flow_use::replace(&mut tx, &row.id, &uses[2..]).await.unwrap();
    assert!(flow_use::users(&mut tx, "lookup_table/lt_1").await.unwrap().is_empty());
    flow::delete(&mut tx, &test.environment, &row.id, NOW).await.unwrap();
    assert!(flow_use::users(&mut tx, "connector_instance/ci_1").await.unwrap().is_empty());
}

async fn entries_are_counted_and_ordered_by_key(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let table = test.table("countries");
    lookup_table::insert(&mut tx, &table).await.unwrap();
    let many: Vec<Entry> = (0..250).map(|n| entry(&format!("key {n:03}"), "old")).collect();
    lookup_table::entry::upsert(&mut tx, &table.id, &many).await.unwrap();
    lookup_table::entry::upsert(&mut tx, &table.id, &[entry("key 007", "Bond"), entry("ä", "ö")]).await.unwrap();
    assert!(lookup_table::entry::delete(&mut tx, &table.id, "key 000").await.unwrap());
    assert!(!lookup_table::entry::delete(&mut tx, &table.id, "key 000").await.unwrap());

    let table = lookup_table::modified(&mut tx, &table.id, NOW).await.unwrap();
    assert_eq!((table.version, table.entries_count), (2, 250));
    assert_eq!(lookup_table::get(&mut tx, &test.environment, &table.id).await.unwrap(), Some(table.clone()));
    let all = lookup_table::entry::all(&mut tx, &table.id).await.unwrap();
    assert_eq!(all.len(), 250);
    assert!(all.is_sorted_by(|a, b| a.key < b.key));
    let found = lookup_table::entry::find(&mut tx, &table.id, "bond", 10).await.unwrap();
    assert_eq!(found, [entry("key 007", "Bond")]);
    assert_eq!(lookup_table::entry::find(&mut tx, &table.id, "", 3).await.unwrap(), all[..3]);
    let names = lookup_table::names(&mut tx, &test.environment).await.unwrap();
    assert_eq!(names, [(table.id.clone(), "countries".to_owned())]);
    assert!(lookup_table::delete(&mut tx, &test.environment, &table.id, NOW).await.unwrap());
    assert!(!lookup_table::delete(&mut tx, &test.environment, &table.id, NOW).await.unwrap());
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
    assert_eq!(connector_instance::get(&mut tx, &test.environment, &row.id).await.unwrap(), Some(row.clone()));
    let filter = connector_instance::Filter { catalog_id: "other".to_owned(), search: String::new() };
    let page = Page::new(None, None);
    assert_eq!(connector_instance::list(&mut tx, &test.environment, &filter, page).await.unwrap().total, 0);
    let filter = connector_instance::Filter { catalog_id: "http".to_owned(), search: "THE".to_owned() };
    let found = connector_instance::list(&mut tx, &test.environment, &filter, page).await.unwrap();
    assert_eq!(found.items, [row.clone()]);
    assert_eq!(connector_instance::names(&mut tx, &test.environment).await.unwrap()[0].name, "erp");
    assert!(connector_instance::delete(&mut tx, &test.environment, &row.id, NOW).await.unwrap());
    assert!(connector_instance::names(&mut tx, &test.environment).await.unwrap().is_empty());
}

async fn every_change_of_what_nodes_run_has_its_own_generation(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let env = &test.environment;
    assert_eq!(published::put(&mut tx, env, "flow/a", [1; 32], vec![1]).await.unwrap(), 1);
    assert_eq!(published::put(&mut tx, env, "flow/b", [2; 32], vec![2]).await.unwrap(), 2);
    assert_eq!(published::put(&mut tx, env, "flow/a", [3; 32], vec![3]).await.unwrap(), 3);
    assert_eq!(published::remove(&mut tx, env, "flow/b").await.unwrap(), 4);
    tx.commit().await.unwrap();

    let mut read = test.store.read().await.unwrap();
    let snapshot = published::snapshot(&mut read, env).await.unwrap().unwrap();
    assert_eq!((snapshot.generation, snapshot.epoch), (4, meta::epoch(&mut read).await.unwrap()));
    let [a] = snapshot.resources.as_slice() else { panic!("one resource is left: {:?}", snapshot.resources) };
    assert_eq!(
        (a.resource_id.as_str(), a.hash, a.sealed.as_slice(), a.generation),
        ("flow/a", [3; 32], [3].as_slice(), 3)
    );
    let since = published::since(&mut read, env, 2).await.unwrap();
    let ids: Vec<_> = since.iter().map(|row| (row.resource_id.as_str(), row.removed)).collect();
    assert_eq!(ids, [("flow/a", false), ("flow/b", true)]);
    assert_eq!(published::get(&mut read, env, "flow/b").await.unwrap(), None);
    assert_eq!(published::snapshot(&mut read, &EnvironmentId::generate()).await.unwrap(), None);
}

async fn a_reader_sees_one_state_while_another_writes(test: TestStore) {
    let mut read = test.store.read().await.unwrap();
    assert_eq!(environment::generation(&mut read, &test.environment).await.unwrap(), Some(0));
    let mut tx = test.store.begin().await.unwrap();
    published::put(&mut tx, &test.environment, "flow/a", [1; 32], vec![1]).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = published::snapshot(&mut read, &test.environment).await.unwrap().unwrap();
    assert_eq!((snapshot.generation, snapshot.resources.len()), (0, 0));
}

async fn concurrent_writers_wait_for_each_other(test: TestStore) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40_u8 {
        let (store, environment) = (test.store.clone(), test.environment.clone());
        tasks.spawn(async move {
            let mut tx = store.begin().await.unwrap();
            published::put(&mut tx, &environment, &format!("flow/{n}"), [n; 32], vec![n]).await.unwrap();
            tx.commit().await.unwrap();
        });
    }
    tasks.join_all().await;
    let mut read = test.store.read().await.unwrap();
    assert_eq!(environment::generation(&mut read, &test.environment).await.unwrap(), Some(40));
}

async fn a_key_is_found_by_its_hash_until_it_is_revoked(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let key = ApiKey {
        id: ApiKeyId::generate(),
        account_id: test.account.clone(),
        name: "ci".to_owned(),
        role: "owner".to_owned(),
        environment_id: None,
        sha256: [5; 32],
        prefix: "kanat_ak_abcdef".to_owned(),
        created_at: NOW,
        expires_at: Some(NOW),
        last_used_at: None,
    };
    api_key::insert(&mut tx, &key).await.unwrap();
    assert_eq!(api_key::by_hash(&mut tx, &[5; 32]).await.unwrap(), Some(key.clone()));
    assert_eq!(api_key::by_hash(&mut tx, &[6; 32]).await.unwrap(), None);
    api_key::used(&mut tx, &key.id, NOW).await.unwrap();
    let used = ApiKey { last_used_at: Some(NOW), ..key.clone() };
    assert_eq!(
        api_key::list(&mut tx, &test.account, Page::new(None, None)).await.unwrap().items,
        std::slice::from_ref(&used)
    );
    assert_eq!(api_key::get(&mut tx, &test.account, &key.id).await.unwrap(), Some(used));
    assert_eq!(api_key::get(&mut tx, &AccountId::generate(), &key.id).await.unwrap(), None);
    assert_eq!(api_key::other_owners(&mut tx, &test.account, &ApiKeyId::generate(), NOW).await.unwrap(), 0);
    let earlier = Timestamp::from_millis(0);
    assert_eq!(api_key::other_owners(&mut tx, &test.account, &ApiKeyId::generate(), earlier).await.unwrap(), 1);
    assert_eq!(api_key::other_owners(&mut tx, &test.account, &key.id, earlier).await.unwrap(), 0);
    assert!(api_key::delete(&mut tx, &test.account, &key.id, NOW).await.unwrap());
    assert_eq!(api_key::by_hash(&mut tx, &[5; 32]).await.unwrap(), None);
}

async fn a_node_is_remembered_as_it_was_last_seen(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let running = Running {
        environment_id: test.environment.clone(),
        epoch: "epoch_1".to_owned(),
        generation: 7,
        set_hash: "00ff".to_owned(),
        rejected: vec![("flow/1".to_owned(), "no such transform".to_owned())],
    };
    let mut seen = Node {
        id: NodeId::generate(),
        boot_id: BootId::from("boot_1"),
        address: "10.0.0.1:8080".to_owned(),
        build: "0.1.0".to_owned(),
        control_plane: BootId::from("boot_a"),
        status: "connected".to_owned(),
        in_flight: 3,
        environments: vec![running.clone()],
        last_seen_at: NOW,
    };
    assert!(node::upsert(&mut tx, &seen).await.unwrap());
    node::environment::upsert(&mut tx, &seen.id, &running).await.unwrap();
    assert_eq!(node::all(&mut tx).await.unwrap(), [seen.clone()]);

    let earlier = Node { last_seen_at: NOW.before(std::time::Duration::from_secs(1)), ..seen.clone() };
    let moved = Node { control_plane: BootId::from("boot_b"), ..earlier };
    assert!(!node::upsert(&mut tx, &moved).await.unwrap(), "another has seen it later");
    seen.in_flight = 0;
    assert!(node::upsert(&mut tx, &seen).await.unwrap());
    assert_eq!(node::all(&mut tx).await.unwrap(), [seen.clone()]);

    let long_ago = Timestamp::from_millis(0);
    let (own, other) = (BootId::from("boot_a"), BootId::from("boot_b"));
    assert_eq!(node::elsewhere(&mut tx, &other, long_ago).await.unwrap(), [seen.clone()]);
    assert_eq!(node::elsewhere(&mut tx, &own, long_ago).await.unwrap(), []);
    assert_eq!(node::elsewhere(&mut tx, &other, NOW).await.unwrap(), []);

    node::environment::delete(&mut tx, &seen.id, &test.environment).await.unwrap();
    assert_eq!(node::all(&mut tx).await.unwrap()[0].environments, []);
    assert_eq!(node::delete_unseen(&mut tx, NOW).await.unwrap(), 0);
    assert_eq!(node::delete_unseen(&mut tx, Timestamp::from_millis(NOW.as_millis() + 1)).await.unwrap(), 1);
}

async fn a_periodic_task_is_taken_up_once_for_each_due_time(test: TestStore) {
    let mut tx = test.store.begin().await.unwrap();
    let due = |n| Timestamp::from_millis(n);
    let mut taken = Vec::new();
    for (name, n) in [("retention", 1), ("retention", 1), ("other", 1), ("retention", 3), ("retention", 2)] {
        taken.push(periodic_task::take(&mut tx, name, due(n)).await.unwrap());
    }
    assert_eq!(taken, [true, false, true, true, false]);
}
