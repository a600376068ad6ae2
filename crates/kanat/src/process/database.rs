//! The databases of a process: files in its data folder, or PostgreSQL.

use std::sync::Arc;

use anyhow::{Context, Result};
use kanat_auth::Sealer;
use kanat_message_log::MessageLog;
use kanat_message_log::postgres::{self, PostgresLog};
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_store::Store;

use super::folder::Folder;
use crate::settings::process::Settings;
use crate::settings::value::Database;

/// Opens the message log.
pub async fn log(database: &Database, folder: &Folder) -> Result<Arc<dyn MessageLog>> {
    match database {
        Database::Files => {
            let log = SqliteLog::open(&folder.private_file("messages.db")?, sqlite::Options::default()).await;
            Ok(Arc::new(log.context("cannot open the message log (messages.db)")?))
        }
        Database::Postgres(url) => {
            let log = PostgresLog::open(url.expose(), postgres::Options::default()).await;
            Ok(Arc::new(log.context("cannot open the message log in PostgreSQL")?))
        }
    }
}

/// Opens the configuration store.
pub async fn store(database: &Database, folder: &Folder) -> Result<Store> {
    match database {
        Database::Files => {
            let store = Store::open_file(&folder.private_file("config.db")?).await;
            store.context("cannot open the configuration store (config.db)")
        }
        Database::Postgres(url) => {
            Store::open(url.expose()).await.context("cannot open the configuration store in PostgreSQL")
        }
    }
}

/// The master key that is set, or that of the data folder.
pub fn sealer(settings: &Settings) -> Result<Arc<Sealer>> {
    let key = settings.master_key.as_ref().map(|key| key.expose().as_str());
    Ok(Arc::new(Sealer::from_env_or_file(key, &settings.data_dir).context("cannot get the master key")?))
}
