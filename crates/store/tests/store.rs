//! The store on a real file and on a real PostgreSQL, by the same tests: names, revisions, pages,
//! generations.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so where it stands"
)]

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId};
use kanat_store::account::Account;
use kanat_store::environment::Environment;
use kanat_store::{Store, account, environment};
use kanat_testing_postgres::Database;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

struct TestStore {
    store: Store,
    account: AccountId,
    environment: EnvironmentId,
    _place: Place,
}

/// Location of the database, which goes with it.
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
                super::$test(crate::TestStore::in_a_file().await).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::TestStore::in_postgres().await).await;
            })*
        }
    };
}

mod store {
    mod api_key;
    mod audit;
    mod connector_health;
    mod connector_instance;
    mod environment;
    mod failover;
    mod flow;
    mod lookup_table;
    mod node;
    mod oauth_token;
    mod policy;
    mod published;
    mod published_api;
    mod sealed;
    mod search_entry;
    mod transaction;
}

impl TestStore {
    async fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
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
        let row = Account {
            id: account.clone(),
            name: "default".to_owned(),
            created_at: NOW,
        };
        account::insert(&mut tx, &row).await.unwrap();
        assert_eq!(account::first(&mut tx).await.unwrap(), Some(row));
        let name = "development".to_owned();
        let row = Environment {
            id: environment.clone(),
            is_default: true,
            ..Environment::new(account.clone(), name, NOW)
        };
        environment::insert(&mut tx, &row).await.unwrap();
        assert_eq!(
            environment::find(&mut tx, &account, "development")
                .await
                .unwrap(),
            Some(row.clone())
        );
        assert_eq!(
            environment::default(&mut tx, &account).await.unwrap(),
            Some(row)
        );
        tx.commit().await.unwrap();
        Self {
            store,
            account,
            environment,
            _place: place,
        }
    }
}
