//! What the writer tells everybody: how far the log has come, and how much was written.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tokio::sync::watch;

use super::operation::{Effect, Operation, Work};
use crate::{Appended, Settled, Stats};

pub(super) struct Shared {
    last_event: AtomicI64,
    /// Something was answered that the tables do not have yet.
    unfolded: AtomicBool,
    changed: watch::Sender<u64>,
    claimable: watch::Sender<u64>,
    commits: AtomicU64,
    operations: AtomicU64,
    appended: AtomicU64,
    settled: AtomicU64,
    claimed: AtomicU64,
}

impl Shared {
    pub fn new(last_event: i64) -> Self {
        Self {
            last_event: AtomicI64::new(last_event),
            unfolded: AtomicBool::new(false),
            changed: watch::Sender::new(0),
            claimable: watch::Sender::new(0),
            commits: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            appended: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
        }
    }

    pub fn last_event(&self) -> i64 {
        self.last_event.load(Ordering::Acquire)
    }

    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn claimable(&self) -> watch::Receiver<u64> {
        self.claimable.subscribe()
    }

    pub fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Relaxed),
            operations: self.operations.load(Ordering::Relaxed),
            appended: self.appended.load(Ordering::Relaxed),
            settled: self.settled.load(Ordering::Relaxed),
            claimed: self.claimed.load(Ordering::Relaxed),
        }
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
    pub fn taken_in<'e>(&self, effects: impl ExactSizeIterator<Item = &'e Effect>) {
        self.unfolded();
        self.count(effects);
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
            self.count(effects.iter());
        }
        self.unfolded.store(false, Ordering::Release);
        self.last_event.store(last_seq, Ordering::Release);
        self.changed
            .send_modify(|version| *version = version.wrapping_add(1));
        let mut done = operations.iter().zip(effects);
        if leaves_something
            || done.any(|(operation, effect)| operation.work.leaves_something(effect))
        {
            self.claimable
                .send_modify(|version| *version = version.wrapping_add(1));
        }
    }

    /// A transaction has been committed that says nothing of what was taken in: it only dropped
    /// what was old.
    pub fn committed_aside(&self, effects: &[Effect]) {
        self.count(effects.iter());
    }

    fn count<'e>(&self, effects: impl ExactSizeIterator<Item = &'e Effect>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.operations
            .fetch_add(count(effects.len()), Ordering::Relaxed);
        for effect in effects {
            match effect {
                Effect::Appended(
                    Appended::Leased(_) | Appended::Waiting | Appended::Awaited(_),
                ) => {
                    self.appended.fetch_add(1, Ordering::Relaxed);
                }
                Effect::Settled(Settled::Done) => {
                    self.settled.fetch_add(1, Ordering::Relaxed);
                }
                Effect::Tried(messages) => {
                    self.appended.fetch_add(*messages, Ordering::Relaxed);
                    self.settled.fetch_add(*messages, Ordering::Relaxed);
                }
                Effect::Claimed(leases) => {
                    self.claimed
                        .fetch_add(count(leases.len()), Ordering::Relaxed);
                }
                Effect::Appended(Appended::Duplicate(_))
                | Effect::Settled(Settled::Fenced)
                | Effect::Polled(_)
                | Effect::Exchanged(_)
                | Effect::Done
                | Effect::Count(_)
                | Effect::Refused(_) => {}
            }
        }
    }
}

impl Work {
    /// Something may wait in the log after this that nobody held before.
    fn leaves_something(&self, effect: &Effect) -> bool {
        match self {
            Self::Append(_) => matches!(effect, Effect::Appended(Appended::Waiting)),
            Self::AppendTried(rows) => rows.iter().any(|row| !row.status().is_final()),
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

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
