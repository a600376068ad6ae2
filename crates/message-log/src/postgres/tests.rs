//! Tests of the PostgreSQL log: its contract, several processes on one log, days, a database that
//! goes away, query plans.

mod days;
mod failover;
mod nodes;
mod outage;
mod proxy;
mod query_plan;
mod restore;

use std::sync::Arc;

use kanat_model::id::EpochId;
use kanat_testing_postgres::Database;
use sqlx::PgConnection;

use super::options::Connections;
use super::{Options, PostgresLog};
use crate::Error;
use crate::contract::Harness;
use crate::prelude::*;

struct LogHarness {
    database: Database,
}

impl LogHarness {
    fn new() -> Self {
        Self {
            database: Database::fresh(),
        }
    }

    async fn open_with(&self, options: Options) -> Arc<PostgresLog> {
        Arc::new(
            PostgresLog::open(self.database.url(), options)
                .await
                .unwrap(),
        )
    }

    fn connecting(&self) -> Connections {
        Connections::new(self.database.url(), &Options::default()).unwrap()
    }

    async fn epoch(&self) -> EpochId {
        let epoch: String = sqlx::query_scalar("SELECT epoch FROM epoch")
            .fetch_one(&mut self.connect().await)
            .await
            .unwrap();
        EpochId::new(epoch)
    }

    /// A connection of another program.
    async fn connect(&self) -> PgConnection {
        self.connecting().session().await.unwrap().connection
    }
}

#[async_trait::async_trait]
impl Harness for LogHarness {
    async fn open(&self) -> Arc<dyn MessageLog> {
        self.open_with(Options::default()).await
    }
}

crate::message_log_contract!(LogHarness::new());

#[tokio::test]
async fn refuses_a_schema_of_a_newer_build() {
    let place = LogHarness::new();
    place.open().await.close().await;
    let mut conn = place.connect().await;
    sqlx::raw_sql("INSERT INTO schema_version (version) VALUES (4711)")
        .execute(&mut conn)
        .await
        .unwrap();
    let opened = PostgresLog::open(place.database.url(), Options::default()).await;
    assert!(matches!(
        opened,
        Err(Error::NewerSchema { found: 4_711, .. })
    ));
}

#[tokio::test]
async fn is_made_once_by_many_that_open_it_at_once() {
    let place = LogHarness::new();
    let opened = futures::future::join_all((0..4).map(|_| place.open())).await;
    for log in opened {
        log.ping().await.unwrap();
        log.close().await;
    }
}

#[tokio::test]
async fn keeps_logs_of_two_schemas_in_one_database_apart() {
    let place = LogHarness::new();
    let other = Options {
        schema: "other_log".to_owned(),
        ..Options::default()
    };
    let one = place.open().await;
    let other = place.open_with(other).await;
    let flow = kanat_model::id::FlowId::generate();
    let sent = crate::contract::message(&flow);
    one.append(sent.clone()).await.unwrap();
    let tenant = crate::Tenant {
        account_id: sent.account_id,
        environment_id: sent.environment_id,
    };
    assert!(one.get(&tenant, &sent.id).await.unwrap().is_some());
    assert!(other.get(&tenant, &sent.id).await.unwrap().is_none());
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn commits_to_the_disk_unless_durability_is_relaxed() {
    let place = LogHarness::new();
    let relaxed = Options {
        durability: super::Durability::RelaxedMayLoseAckedMessages,
        ..Options::default()
    };
    for (options, expected) in [(Options::default(), "on"), (relaxed, "off")] {
        let connecting = Connections::new(place.database.url(), &options).unwrap();
        let mut conn = connecting.session().await.unwrap().connection;
        let found: String = sqlx::query_scalar("SHOW synchronous_commit")
            .fetch_one(&mut conn)
            .await
            .unwrap();
        assert_eq!(found, expected);
    }
}
