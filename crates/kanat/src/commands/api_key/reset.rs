//! `kanat api-key reset`: a new owner key for a service that is stopped.

use std::path::Path;

use anyhow::{Context, Result};
use kanat_control_plane::bootstrap;
use kanat_store::Store;

use crate::exit::usage;
use crate::output;
use crate::process::folder::Folder;

/// The configuration store in a data folder.
const STORE: &str = "config.db";

/// Makes a new owner key and revokes the former one.
///
/// # Errors
///
/// The folder holds no configuration, or a service uses it.
pub async fn run(data_dir: &Path) -> Result<()> {
    let file = data_dir.join(STORE);
    if !file.is_file() {
        return Err(usage(format!("there is no {STORE} in {}: no service keeps its keys there", data_dir.display())));
    }
    let _folder = Folder::take_or(data_dir, "stop the service first, and start it again afterwards")?;
    let store = Store::open(&format!("sqlite:{}", file.display())).await;
    let store = store.with_context(|| format!("cannot open {}", file.display()))?;
    let reset = bootstrap::reset_owner_key(&store).await;
    store.close().await;
    let reset = reset.with_context(|| format!("cannot make a new owner key in {}", file.display()))?;
    match reset.revoked {
        Some(prefix) => eprintln!("the former owner key, {prefix}..., is revoked"),
        None => eprintln!("the former owner key was revoked before"),
    }
    eprintln!("the new owner key is shown this once; start the service, then log in with: kanat login --api-key <key>");
    output::line(reset.key.expose())
}
