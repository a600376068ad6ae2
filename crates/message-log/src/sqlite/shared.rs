//! What the writer tells everybody: how far the log has come, and how much was written.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::sync::watch;

use super::operation::{Effect, Operation, Work};
use crate::completed::CompletedRow;
use crate::effect::Progress;
use crate::{AppendOutcome, Stats};

pub(super) struct Shared {
    last_event: AtomicI64,
    /// Something was answered that the tables do not have yet.
    unfolded: AtomicBool,
    progress: Progress,
}

impl Shared {
    pub fn new(last_event: i64) -> Self {
        Self {
            last_event: AtomicI64::new(last_event),
            unfolded: AtomicBool::new(false),
            progress: Progress::default(),
        }
    }

    pub fn last_event(&self) -> i64 {
        self.last_event.load(Ordering::Acquire)
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

    /// Whether something was answered that whoever reads the tables would miss.
    pub fn is_unfolded(&self) -> bool {
        self.unfolded.load(Ordering::Acquire)
    }

    /// The tables lack something that was answered.
    pub fn unfolded(&self) {
        self.unfolded.store(true, Ordering::Release);
    }

    /// The journal has operations on disk, and nobody was answered yet.
    pub fn taken_in<'e>(&self, effects: impl Iterator<Item = &'e Effect>) {
        self.unfolded();
        self.progress.count_commit(effects);
    }

    /// A transaction has been committed, after everything that was taken in; `leaves_something` of
    /// that to be claimed.
    pub fn committed(
        &self,
        last_seq: i64,
        operations: &[Operation],
        effects: &[Effect],
        leaves_something: bool,
    ) {
        if !operations.is_empty() {
            self.progress.count_commit(effects);
        }
        self.unfolded.store(false, Ordering::Release);
        self.last_event.store(last_seq, Ordering::Release);
        self.progress.notify_changed();
        let mut done = operations.iter().zip(effects);
        if leaves_something
            || done.any(|(operation, effect)| operation.work.leaves_something(effect))
        {
            self.progress.notify_claimable();
        }
    }

    /// A transaction has been committed that says nothing of what was taken in: it only dropped
    /// what was old.
    pub fn committed_aside(&self, effects: &[Effect]) {
        self.progress.count_commit(effects);
    }
}

impl Work {
    /// Something may wait in the log after this that nobody held before.
    fn leaves_something(&self, effect: &Effect) -> bool {
        match self {
            Self::Append(_) => matches!(effect, Effect::Appended(AppendOutcome::Waiting)),
            Self::AppendCompleted(rows) => !rows.iter().all(CompletedRow::is_final),
            // The next of its key may be due now.
            Self::Settle(change) => change.ordered || !change.is_final(),
            Self::Retry { .. }
            | Self::Discard { .. }
            | Self::OpenLease { .. }
            | Self::HandBack(_) => true,
            Self::Checkpoint(_)
            | Self::Claim(_)
            | Self::EndFlow { .. }
            | Self::RenewLease(_)
            | Self::SavePlans(_)
            | Self::ClaimPoll(_)
            | Self::KeepPoll(_)
            | Self::NoteRecords { .. }
            | Self::ForgetRecords { .. }
            | Self::Exchange(_)
            | Self::ForgetQuotas
            | Self::Probe
            | Self::ForgetPoll(_)
            | Self::DropMessages { .. }
            | Self::DropKeys { .. }
            | Self::DropPlan { .. }
            | Self::Fold
            | Self::Shrink { .. }
            | Self::Truncate
            | Self::Close => false,
        }
    }
}
