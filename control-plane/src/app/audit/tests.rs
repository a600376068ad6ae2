//! The chain with several control planes on one database, and with retention.

use std::sync::Arc;

use kanat_auth::Role;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_model::Timestamp;
use kanat_store::Store;
use kanat_testing_postgres::Database;

use super::*;
use crate::app::testing;

async fn write_some(call: &Call, count: usize) {
    for _ in 0..count {
        record_before_work(call, Entity::default(), None)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn control_planes_extend_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::fresh();
    let mut calls = Vec::new();
    for name in ["one", "two"] {
        let store = Store::open(database.url()).await.unwrap();
        crate::app::bootstrap::run(&store, None).await.unwrap();
        let log = folder.path().join(name);
        let log = SqliteLog::open(log, sqlite::Options::default());
        let app = testing::over(store, Arc::new(log.await.unwrap()));
        calls.push(testing::call(&app, Role::Owner).await);
    }
    let work = async |call: &Call| {
        for _ in 0..5 {
            write_some(call, 3).await;
            // The first link of two planes may be one too many, and the next look mends it.
            let _ = chain::chain_all(&call.app).await;
        }
    };
    tokio::join!(work(&calls[0]), work(&calls[1]));
    let found = verify(&calls[0], None).await.unwrap();
    assert_eq!(found.fault, None);
    assert_eq!(found.unchained, 0);
    // With that of the first start.
    assert_eq!(found.entries, 31);
    for call in &calls {
        call.app.log.close().await;
    }
}

#[tokio::test]
async fn what_retention_has_dropped_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let call = testing::call(&app, Role::Owner).await;
    write_some(&call, 3).await;
    let former = verify(&call, None).await.unwrap();
    assert_eq!(former.fault, None);
    assert_eq!(former.entries, 4);
    let dropped = chain::retain(
        &app,
        Timestamp::now().after(std::time::Duration::from_secs(1)),
    );
    assert_eq!(dropped.await.unwrap(), 4);
    let found = verify(&call, former.head.as_deref()).await.unwrap();
    assert_eq!(found.fault, None);
    assert_eq!(found.entries, 0);
    write_some(&call, 2).await;
    let found = verify(&call, former.head.as_deref()).await.unwrap();
    assert_eq!(found.fault, None);
    assert_eq!(found.entries, 2);
    app.log.close().await;
}
