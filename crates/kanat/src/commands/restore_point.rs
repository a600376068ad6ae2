//! `kanat restore-point`: new epochs for a database that was put back to an earlier copy.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use kanat_message_log::MessageLog;
use kanat_message_log::postgres::PostgresLog;
use kanat_model::id::EpochId;
use kanat_store::{Store, meta};

use crate::exit::usage;
use crate::output;
use crate::process::folder::Folder;
use crate::settings::value::{self, Database};

/// Arguments of `kanat restore-point`: the database that was restored.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct RestorePoint {
    /// The restored PostgreSQL database, as in postgres://user:password@host/database. Control
    /// planes and nodes may run.
    #[arg(long)]
    database_url: Option<String>,
    /// The restored data folder of a service that is stopped.
    #[arg(long)]
    data_dir: Option<PathBuf>,
}

impl RestorePoint {
    /// Gives the configuration and the message log epochs that no process knows.
    ///
    /// # Errors
    /// The database is out of reach or written by a newer build, or a service uses the folder.
    pub async fn run(self) -> Result<()> {
        if let Some(folder) = self.data_dir {
            return of_folder(&folder).await;
        }
        match value::database(self.database_url)
            .map_err(|problem| usage(format!("--database-url: {problem}")))?
        {
            Database::Postgres(url) => of_postgres(url.expose()).await,
            Database::Files => Err(usage("--database-url: is empty")),
        }
    }
}

async fn of_postgres(url: &str) -> Result<()> {
    let store = Store::open(url)
        .await
        .context("cannot open the configuration")?;
    let log = PostgresLog::open(url, kanat_message_log::postgres::Options::default()).await;
    let log = log.context("cannot open the message log")?;
    let changed =
        async { anyhow::Ok((change_past(&store).await?, log.change_past().await?)) }.await;
    store.close().await;
    log.close().await;
    let (of_store, of_log) = changed.context("cannot write a new epoch")?;
    print_epoch("configuration", &of_store)?;
    print_epoch("message log", &of_log)
}

/// A log in files is read anew by the next start: nothing of before can meet it.
async fn of_folder(folder: &Path) -> Result<()> {
    let (_folder, store) = Folder::open_store(folder).await?;
    let changed = change_past(&store).await;
    store.close().await;
    print_epoch(
        "configuration",
        &changed.context("cannot write a new epoch")?,
    )
}

async fn change_past(store: &Store) -> Result<(EpochId, EpochId), kanat_store::Error> {
    let mut tx = store.begin().await?;
    meta::lock(&mut tx).await?;
    let former = meta::epoch(&mut tx).await?;
    meta::renew_epoch(&mut tx, &former).await?;
    let present = meta::epoch(&mut tx).await?;
    tx.commit().await?;
    Ok((former, present))
}

fn print_epoch(what: &str, (former, present): &(EpochId, EpochId)) -> Result<()> {
    output::line(&format!("the {what} has epoch {present}, after {former}"))
}
