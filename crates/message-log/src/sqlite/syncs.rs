//! Syncs that the disk failed. What one of them was to write may be lost, and no later sync of the
//! file tells of it or writes it again: the system takes it for written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

/// How many there were, for everybody who has the tables open.
#[derive(Debug, Clone, Default)]
pub(super) struct Syncs(Arc<AtomicU64>);

impl Syncs {
    pub fn failed(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    pub fn any_failed(&self) -> bool {
        self.failed() > 0
    }

    /// Counts the error if it is one of a sync.
    pub fn note(&self, error: &rusqlite::Error) {
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
        let syncs = Syncs::default();
        let failed = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        for code in [
            ffi::SQLITE_FULL,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR,
        ] {
            syncs.note(&failed(code));
        }
        syncs.note(&rusqlite::Error::InvalidQuery);
        assert!(!syncs.any_failed());
        syncs.note(&failed(ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(syncs.clone().failed(), 1);
    }
}
