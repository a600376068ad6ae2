//! The bounds of the backlog of a process, of which one follows from the disk where nobody gives
//! it.

use anyhow::{Context, Result};
use kanat_data_plane::BacklogLimits;

use crate::settings::value::Database;
use crate::settings::{node, process};

/// Least default, in bytes.
const LEAST: u64 = 1 << 30;
/// Default with PostgreSQL, whose disk is not ours to see, in bytes.
const WITH_POSTGRES: u64 = 8 << 30;

/// Returns the bounds that the settings give.
///
/// # Errors
/// The file system of the data folder does not say how much of it is free.
pub fn limits(node: &node::Settings, process: &process::Settings) -> Result<BacklogLimits> {
    let bytes = match (node.backlog_bytes, &process.database) {
        (Some(bytes), _) => bytes,
        (None, Database::Postgres(_)) => WITH_POSTGRES,
        (None, Database::Files) => {
            let disk = rustix::fs::statvfs(&process.data_dir);
            let disk = disk.with_context(|| {
                format!("cannot see how much of {:?} is free", process.data_dir)
            })?;
            (disk.f_bavail.saturating_mul(disk.f_frsize) / 4).max(LEAST)
        }
    };
    Ok(BacklogLimits {
        bytes,
        age: node.backlog_age,
    })
}
