//! What the parts of an open log tell each other: that something happened, and how much was
//! written.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::operation::Effect;
use crate::{Appended, Settled, Stats};

pub(super) struct Shared {
    changed: watch::Sender<u64>,
    claimable: watch::Sender<u64>,
    /// What other processes are to be told.
    news: watch::Sender<News>,
    commits: AtomicU64,
    operations: AtomicU64,
    appended: AtomicU64,
    settled: AtomicU64,
    claimed: AtomicU64,
}

/// Counts of what happened here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct News {
    pub changed: u64,
    pub claimable: u64,
}

/// What may be found in the log that was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Events, or an end to what held them back from readers.
    Events,
    /// Something to claim, and events.
    Claimable,
}

impl Shared {
    pub fn new() -> Self {
        Self {
            changed: watch::Sender::new(0),
            claimable: watch::Sender::new(0),
            news: watch::Sender::new(News::default()),
            commits: AtomicU64::new(0),
            operations: AtomicU64::new(0),
            appended: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
        }
    }

    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn claimable(&self) -> watch::Receiver<u64> {
        self.claimable.subscribe()
    }

    pub fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
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
    pub fn committed<'e>(&self, effects: impl IntoIterator<Item = &'e Effect>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        for effect in effects {
            self.operations.fetch_add(1, Ordering::Relaxed);
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
                Effect::Claimed(claimed) => {
                    let count = u64::try_from(claimed.len()).unwrap_or(0);
                    self.claimed.fetch_add(count, Ordering::Relaxed);
                }
                Effect::Appended(Appended::Duplicate(_)) | Effect::Settled(Settled::Fenced) => {}
            }
        }
    }

    /// Wakes who waits here, and has the other processes told. Also after a transaction that was
    /// undone: until then it held the events of others back.
    pub fn happened(&self, change: Change) {
        self.heard(change);
        self.news.send_modify(|news| {
            news.changed = news.changed.wrapping_add(1);
            if change == Change::Claimable {
                news.claimable = news.claimable.wrapping_add(1);
            }
        });
    }

    /// Wakes who waits here.
    pub fn heard(&self, change: Change) {
        self.changed
            .send_modify(|version| *version = version.wrapping_add(1));
        if change == Change::Claimable {
            self.claimable
                .send_modify(|version| *version = version.wrapping_add(1));
        }
    }
}
