//! The databases of a process: files in its data folder, or PostgreSQL, which is waited for when it
//! is away.

use std::sync::Arc;

use anyhow::{Context, Result};
use kanat_auth::{MASTER_KEY, Sealer};
use kanat_message_log::postgres::PostgresLog;
use kanat_message_log::sqlite::{self, SqliteLog};
use kanat_message_log::{Error, MessageLog};
use kanat_store::Store;

use super::folder::{Folder, STORE, close};
use super::waiting::Listeners;
use crate::exit::{failure, usage};
use crate::settings::process::Settings;
use crate::settings::value::Database;

/// Opens the message log.
pub async fn log(
    settings: &Settings,
    folder: &Folder,
    listeners: &Listeners<'_>,
) -> Result<Arc<dyn MessageLog>> {
    match &settings.database {
        Database::Files => {
            let log =
                SqliteLog::open(&folder.database("messages.db")?, sqlite::Options::default()).await;
            Ok(Arc::new(
                log.context("cannot open the message log (messages.db)")?,
            ))
        }
        Database::Postgres(url) => {
            let open = || PostgresLog::open(url.expose(), settings.pools.log.clone());
            let log = listeners
                .wait_for(open, |error| matches!(error, Error::Unavailable(_)))
                .await;
            Ok(Arc::new(
                log.context("cannot open the message log in PostgreSQL")?,
            ))
        }
    }
}

/// Checks that a file of the configuration is not missing beside a log with messages. It comes
/// before anything is made in the folder: what a refused start left must not meet the files that
/// are put back.
///
/// # Errors
/// It is missing.
pub async fn check_configuration(
    settings: &Settings,
    folder: &Folder,
    log: &dyn MessageLog,
) -> Result<()> {
    let is_file = matches!(settings.database, Database::Files);
    let is_missing = is_file && !folder.path().join(STORE).exists();
    if is_missing && !log.is_empty().await? {
        return Err(kanat_control_plane::Error::NoConfiguration.into());
    }
    Ok(())
}

/// Opens the configuration store beside the processes that have it open.
///
/// # Errors
/// It is not in PostgreSQL, or out of reach.
pub async fn shared_store(database: &Database) -> Result<Store> {
    let Database::Postgres(url) = database else {
        return Err(failure("there is no database"));
    };
    Store::attach(url.expose())
        .await
        .context("cannot open the configuration store in PostgreSQL")
}

/// Opens the configuration store.
///
/// # Errors
/// It cannot be opened.
pub async fn store(
    settings: &Settings,
    folder: &Folder,
    listeners: &Listeners<'_>,
) -> Result<Store> {
    let options = &settings.pools.store;
    match &settings.database {
        Database::Files => {
            let path = folder.database(STORE)?;
            let store = Store::open_with(&format!("sqlite:{}", path.display()), options).await;
            store.context("cannot open the configuration store (config.db)")
        }
        Database::Postgres(url) => {
            let open = || Store::open_with(url.expose(), options);
            let store = listeners.wait_for(open, kanat_store::Error::may_pass).await;
            store.context("cannot open the configuration store in PostgreSQL")
        }
    }
}

/// The master key that is set, or that of the data folder.
///
/// # Errors
/// The key cannot be read, or its file is missing beside a configuration that was sealed under it.
pub fn sealer(settings: &Settings) -> Result<Arc<Sealer>> {
    let is_there = |name| settings.data_dir.join(name).exists();
    if settings.master_key.is_none() && is_there(STORE) && !is_there(MASTER_KEY) {
        let file = settings.data_dir.join(MASTER_KEY);
        return Err(usage(format!(
            "{} is missing: restore it from a backup, or give the key that it held by \
             KANAT_MASTER_KEY; no other key opens what is sealed in {STORE}",
            file.display()
        )));
    }
    close(&settings.data_dir.join(MASTER_KEY), 0o600);
    let key = settings
        .master_key
        .as_ref()
        .map(|key| key.expose().as_str());
    Ok(Arc::new(
        Sealer::from_env_or_file(key, &settings.data_dir).context("cannot get the master key")?,
    ))
}
