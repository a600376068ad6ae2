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

    /// Logs that a number of operations were refused, and returns the error for their callers.
    pub fn log(&self, error: &rusqlite::Error, refused: usize) -> Error {
        let refusal = write_error(error, &self.folder);
        if let Some(operations) = self.count(refused, Instant::now()) {
            tracing::error!(%error, operations, "{refusal}");
        }
        refusal
    }

    /// Counts refused operations. Returns the number for a line of the log if one is due.
    fn count(&self, refused: usize, now: Instant) -> Option<usize> {
        let unlogged = self.unlogged.get() + refused;
        self.unlogged.set(unlogged);
        let is_due = self
            .last_line
            .get()
            .is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        if unlogged == 0 || !is_due {
            return None;
        }
        self.last_line.set(Some(now));
        self.unlogged.set(0);
        Some(unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_the_sum_of_the_refused_operations_once_a_minute() {
        let log = WriteFailureLog::new(PathBuf::new());
        let start = Instant::now();
        assert_eq!(log.count(2, start), Some(2));
        assert_eq!(log.count(3, start), None);
        assert_eq!(log.count(4, start + LOG_INTERVAL), Some(7));
    }

    #[test]
    fn logs_nothing_and_spends_no_line_while_nothing_is_refused() {
        let log = WriteFailureLog::new(PathBuf::new());
        let start = Instant::now();
        assert_eq!(log.count(0, start), None);
        assert_eq!(log.count(1, start), Some(1));
    }
}
