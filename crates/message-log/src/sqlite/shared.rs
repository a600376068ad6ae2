//! What the writer tells everybody: how far the log has come, and how much was written.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use tokio::sync::watch;

use super::operation::{Effect, Operation, Work};
use crate::{Appended, Settled, Stats};

pub(super) struct Shared {
    last_event: AtomicI64,
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

    /// A transaction is on disk.
    pub fn committed(&self, last_seq: i64, operations: &[Operation], effects: &[Effect]) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.operations.fetch_add(count(effects.len()), Ordering::Relaxed);
        for effect in effects {
            match effect {
                Effect::Appended(Appended::Leased(_) | Appended::Waiting) => {
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
                    self.claimed.fetch_add(count(leases.len()), Ordering::Relaxed);
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
        self.last_event.store(last_seq, Ordering::Release);
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
        if operations.iter().zip(effects).any(|(operation, effect)| operation.work.leaves_something(effect)) {
            self.claimable.send_modify(|version| *version = version.wrapping_add(1));
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
            Self::Retry { .. } | Self::Discard { .. } | Self::OpenLease { .. } | Self::HandBack(_) => true,
            Self::Checkpoint(_)
            | Self::Claim(_)
            | Self::RenewLease(_)
            | Self::SavePlans(_)
            | Self::ClaimPoll(_)
            | Self::KeepPoll(_)
            | Self::NoteRecords { .. }
            | Self::ForgetRecords { .. }
            | Self::Exchange(_)
            | Self::ForgetQuotas
            | Self::ForgetPoll(_)
            | Self::DropMessages { .. }
            | Self::DropKeys { .. }
            | Self::DropPlan { .. }
            | Self::Shrink { .. }
            | Self::Truncate
            | Self::Close => false,
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
