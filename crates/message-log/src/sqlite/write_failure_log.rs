//! Lines of the service's log about operations that were not written, one per minute at most.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::failure::write_error;
use crate::Error;

/// Time between two lines.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Log of failed writes, for the writer's thread.
pub(super) struct WriteFailureLog {
    /// Folder of the message log's files.
    folder: PathBuf,
    last_line: Cell<Option<Instant>>,
    /// Number of operations that were not written since the last line.
    unlogged: Cell<usize>,
}

impl WriteFailureLog {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            last_line: Cell::default(),
            unlogged: Cell::default(),
        }
    }

    /// Logs that a number of operations were not written, and returns the error for their callers.
    pub fn log(&self, error: &rusqlite::Error, operations: usize) -> Error {
        let refusal = write_error(error, &self.folder);
        let now = Instant::now();
        self.unlogged.set(self.unlogged.get() + operations);
        if self
            .last_line
            .get()
            .is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL)
        {
            self.last_line.set(Some(now));
            tracing::error!(%error, operations = self.unlogged.take(), "{refusal}");
        }
        refusal
    }
}
