//! Tests of the SQLite log: the contract of every log, with the journal and without it, and its own
//! promises about its file, its query plans, and a disk that is full or fails.

mod journal;
mod outage;
mod pressure;
mod query_plan;
mod retain;
mod search;
mod size;

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use super::{Durability, Options, SqliteLog};
use crate::Error;
use crate::contract::Harness;
use crate::prelude::*;

struct File {
    _dir: TempDir,
    path: PathBuf,
    options: Options,
}

impl File {
    fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    fn in_folder(dir: TempDir) -> Self {
        Self {
            path: dir.path().join("messages.db"),
            _dir: dir,
            options: Options::default(),
        }
    }

    /// Turns the journal off.
    fn without_journal(mut self) -> Self {
        self.options.without_journal = true;
        self
    }

    async fn open_with(&self, options: Options) -> Arc<SqliteLog> {
        Arc::new(SqliteLog::open(&self.path, options).await.unwrap())
    }

    /// A connection of another program.
    async fn connect(&self) -> sqlx::SqliteConnection {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .connect()
            .await
            .unwrap()
    }

    fn size_bytes(&self) -> u64 {
        std::fs::metadata(&self.path).unwrap().len()
    }

    /// Returns the length of the write-ahead log.
    fn write_ahead_bytes(&self) -> u64 {
        std::fs::metadata(self.path.with_extension("db-wal"))
            .unwrap()
            .len()
    }
}

#[async_trait::async_trait]
impl Harness for File {
    async fn open(&self) -> Arc<dyn MessageLog> {
        self.open_with(self.options.clone()).await
    }
}

mod with_journal {
    use super::File;

    crate::message_log_contract!(File::new());
}

mod without_journal {
    use super::File;

    crate::message_log_contract!(File::new().without_journal());
}

#[tokio::test]
async fn refuses_a_file_of_a_newer_build() {
    let file = File::new();
    file.open().await.close().await;
    let mut conn = file.connect().await;
    sqlx::raw_sql("PRAGMA user_version = 4711")
        .execute(&mut conn)
        .await
        .unwrap();
    let opened = SqliteLog::open(&file.path, Options::default()).await;
    assert!(matches!(
        opened,
        Err(Error::NewerSchema { found: 4_711, .. })
    ));
}

#[tokio::test]
async fn commits_to_the_disk_unless_durability_is_relaxed() {
    let file = File::new();
    let relaxed = Options {
        durability: Durability::RelaxedMayLoseAckedMessages,
        ..Options::default()
    };
    for (options, expected) in [(Options::default(), 2_i64), (relaxed, 1)] {
        let conn = options.open_writer(&file.path).unwrap();
        let pragma = |name: &str| {
            conn.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        };
        assert_eq!(pragma("synchronous").unwrap(), expected.into());
        assert_eq!(pragma("journal_mode").unwrap(), "wal".to_owned().into());
    }
}

/// A caller may hang up at any moment of a list: what it was read with is there for the next one.
#[tokio::test]
async fn a_list_that_nobody_waits_for_leaves_its_connection_to_others() {
    let file = File::new();
    let log = file.open().await;
    let tenant = crate::Tenant {
        account_id: kanat_model::id::AccountId::new("acc_1"),
        environment_id: kanat_model::id::EnvironmentId::new("env_1"),
    };
    let filter = crate::Filter::flow(tenant, kanat_model::id::FlowId::new("flw_1"));
    let first = crate::Position::Page(kanat_model::page::Page::new(None, None));
    let mut hung_up = 0;
    for polls in (1..12).cycle().take(1_000) {
        let mut list = Box::pin(log.list(&filter, first));
        let mut left = polls;
        let ended = std::future::poll_fn(|cx| {
            left -= 1;
            match list.as_mut().poll(cx) {
                std::task::Poll::Ready(page) => std::task::Poll::Ready(Some(page)),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
                std::task::Poll::Pending => std::task::Poll::Pending,
            }
        });
        match ended.await {
            Some(page) => drop(page.unwrap()),
            None => hung_up += 1,
        }
    }
    assert!(hung_up > 0, "nobody hung up");
    log.list(&filter, first).await.unwrap();
    log.close().await;
}
