//! State that the writer shares with the callers of the log: its position, its counters, and the
//! signals of changes.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::sync::watch;

use super::operation::Effect;
use crate::Stats;
use crate::effect::Progress;

/// State that the writer updates and callers read.
pub(super) struct LogState {
    last_seq: AtomicI64,
    /// True while the tables lack acknowledged operations.
    has_pending: AtomicBool,
    progress: Progress,
}

impl LogState {
    pub fn new(last_seq: i64) -> Self {
        Self {
            last_seq: AtomicI64::new(last_seq),
            has_pending: AtomicBool::new(false),
            progress: Progress::default(),
        }
    }

    pub fn last_seq(&self) -> i64 {
        self.last_seq.load(Ordering::Acquire)
    }

    pub fn changed(&self) -> watch::Receiver<u64> {
        self.progress.changed()
    }

    pub fn claimable(&self) -> watch::Receiver<u64> {
        self.progress.claimable()
    }

    pub fn stats(&self) -> Stats {
        self.progress.stats()
    }

    /// Returns whether the tables lack acknowledged operations, which a reader would miss.
    pub fn has_pending(&self) -> bool {
        self.has_pending.load(Ordering::Acquire)
    }

    /// Notes that the tables lack acknowledged operations.
    pub fn set_pending(&self) {
        self.has_pending.store(true, Ordering::Release);
    }

    /// Notes operations that the journal has on disk, before their callers are answered.
    pub fn journaled<'e>(&self, effects: impl Iterator<Item = &'e Effect>) {
        self.set_pending();
        self.progress.count_commit(effects);
    }

    /// Notes a committed transaction that also applied the pending writes. A transaction that did
    /// nothing else has no effects.
    pub fn committed(&self, last_seq: i64, effects: &[Effect]) {
        if !effects.is_empty() {
            self.progress.count_commit(effects);
        }
        self.has_pending.store(false, Ordering::Release);
        self.last_seq.store(last_seq, Ordering::Release);
        self.progress.notify_changed();
    }

    /// Notes that a message can be claimed that could not be claimed before.
    pub fn notify_claimable(&self) {
        self.progress.notify_claimable();
    }

    /// Notes a committed transaction that dropped old rows and did not apply the pending writes.
    pub fn committed_without_pending(&self, effects: &[Effect]) {
        self.progress.count_commit(effects);
    }
}
