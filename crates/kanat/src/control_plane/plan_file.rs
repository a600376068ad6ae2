//! `kanat control-plane --write-plan-file`: what is published, as a file for nodes that reach no
//! control plane.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use kanat_control_plane::push::export;
use kanat_control_plane::push::source::Source;
use kanat_store::Store;

use crate::exit::failure;
use crate::process::database;
use crate::settings::control_plane::Settings;
use crate::settings::value::Database;

/// Writes the sets of all environments, sealed; the file is whole or not there, and its owner's
/// alone.
pub async fn write(settings: &Settings, file: &Path) -> Result<()> {
    let Database::Postgres(url) = &settings.process.database else {
        return Err(failure("there is no database"));
    };
    let sealer = database::sealer(&settings.process)?;
    let store = Store::attach(url.expose())
        .await
        .context("cannot open the configuration store in PostgreSQL")?;
    let sets = export::published_sets(&Source::new(store.clone(), sealer.clone()), &[]).await;
    store.close().await;
    let sealed = export::seal(&sets.context("cannot read what is published")?, &sealer);

    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut beside| {
        beside.write_all(&sealed)?;
        beside.as_file().sync_all()?;
        beside.persist(file).map_err(|error| error.error)
    });
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}
