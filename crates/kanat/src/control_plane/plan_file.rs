//! `kanat control-plane --write-plan-file`: what is published, as a file for nodes that reach no
//! control plane.

use std::path::Path;

use anyhow::{Context, Result};
use kanat_control_plane::push::export;
use kanat_control_plane::push::source::Source;

use crate::process::database;
use crate::settings::control_plane::Settings;
use crate::whole_file;

/// Writes the sets of all environments, sealed; the file is whole or not there, and its owner's
/// alone.
pub async fn write(settings: &Settings, file: &Path) -> Result<()> {
    let sealer = database::sealer(&settings.process)?;
    let store = database::shared_store(&settings.process.database).await?;
    let sets = export::published_sets(&Source::new(store.clone(), sealer.clone()), &[]).await;
    store.close().await;
    let sealed = export::seal(&sets.context("cannot read what is published")?, &sealer);

    let written = whole_file::write(file, &sealed);
    written.with_context(|| format!("cannot write {}", file.display()))
}
