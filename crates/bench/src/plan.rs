//! How much is measured, and how often.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::kanat::Start;
use crate::load::Pace;

/// The loads of a whole run.
pub struct Plan {
    pub kanat: PathBuf,
    /// Folder on the disk to be measured; the system's temporary one when there is none.
    pub folder: Option<PathBuf>,
    pub rounds: usize,
    /// Length of each load.
    pub length: Duration,
    pub sizes: Sizes,
}

/// Sizes of the loads and of the data.
pub struct Sizes {
    /// Connections, where many are meant.
    pub connections: usize,
    pub pace: Pace,
    /// Orders of a burst.
    pub burst: u64,
    /// Flows of an idle service.
    pub idle_flows: usize,
    /// Length of each observation of an idle service.
    pub idle_length: Duration,
    /// Flows, lookup entries and consumer keys of a large node.
    pub flows: usize,
    pub entries: usize,
    pub keys: usize,
    /// Flows changed one after another.
    pub changes: usize,
    /// Messages in a log that is not empty.
    pub messages: usize,
}

/// Sizes of a whole run.
pub const FULL: Sizes = Sizes {
    connections: 64,
    pace: Pace {
        per_second: 200,
        length: Duration::from_secs(5),
        connections: 16,
    },
    burst: 40_000,
    idle_flows: 1_000,
    idle_length: Duration::from_secs(10),
    flows: 100_000,
    entries: 1_000_000,
    keys: 1_000_000,
    changes: 20,
    messages: 10_000_000,
};

/// Sizes with which everything runs in seconds, in a debug build too; the figures mean nothing.
pub const QUICK: Sizes = Sizes {
    connections: 8,
    pace: Pace {
        per_second: 100,
        length: Duration::from_millis(200),
        connections: 4,
    },
    burst: 100,
    idle_flows: 20,
    idle_length: Duration::from_millis(200),
    flows: 100,
    entries: 1_000,
    keys: 1_000,
    changes: 2,
    messages: 2_000,
};

impl Plan {
    /// Makes a folder for data, which is removed when dropped. The disk has nothing left to do of
    /// the measurements before.
    pub fn scratch(&self) -> Result<TempDir> {
        let folder = match &self.folder {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        };
        let folder = folder.context("cannot make a folder for the data")?;
        rustix::fs::sync();
        Ok(folder)
    }

    /// Returns how to start the service under measurement, with its data in `folder`.
    pub fn start<'a>(&'a self, folder: &'a Path) -> Start<'a> {
        Start {
            binary: &self.kanat,
            folder,
            database: None,
        }
    }
}
