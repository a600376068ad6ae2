//! Failed syncs of the tables. The bytes of a failed sync may be lost: the kernel marks the pages
//! clean, so no later sync reports or retries them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

/// Number of failed syncs, shared by all users of the tables.
#[derive(Debug, Clone, Default)]
pub(super) struct SyncFailures(Arc<AtomicU64>);

impl SyncFailures {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn any(&self) -> bool {
        self.count() > 0
    }

    /// Counts the error if it is that of a failed sync. Any other error changes nothing.
    pub fn record_if_fsync_error(&self, error: &rusqlite::Error) {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if matches!(
            code,
            Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
        ) {
            tracing::error!(%error, "the disk failed to sync the message log");
            self.0.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_failed_syncs_and_no_other_failure() {
        let failures = SyncFailures::default();
        let failed = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR,
        ] {
            failures.record_if_fsync_error(&failed(code));
        }
        failures.record_if_fsync_error(&rusqlite::Error::InvalidQuery);
        assert!(!failures.any());
        failures.record_if_fsync_error(&failed(ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(failures.clone().count(), 1);
    }
}
