//! `kanat api-key reset`: a new owner key for a service that is stopped.

use std::path::Path;

use anyhow::{Context, Result};
use kanat_control_plane::app::bootstrap;

use crate::output;
use crate::process::folder::Folder;

/// Makes a new owner key and revokes the former one.
///
/// # Errors
///
/// The folder holds no configuration, or a service uses it.
pub async fn run(data_dir: &Path) -> Result<()> {
    let (_folder, store) = Folder::open_store(data_dir).await?;
    let reset = bootstrap::reset_owner_key(&store).await;
    store.close().await;
    let reset =
        reset.with_context(|| format!("cannot make a new owner key in {}", data_dir.display()))?;
    match reset.revoked {
        Some(prefix) => eprintln!("the former owner key, {prefix}..., is revoked"),
        None => eprintln!("the former owner key was revoked before"),
    }
    eprintln!(
        "the new owner key is shown this once; start the service, then log in with: kanat login \
         --api-key <key>"
    );
    output::line(reset.key.expose())
}
