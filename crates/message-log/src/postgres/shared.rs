//! State that the parts of an open log share: its progress, and what other processes are notified
//! of.

use tokio::sync::watch;

use crate::effect::Progress;

/// State of an open log.
#[derive(Default)]
pub(super) struct LogState {
    pub progress: Progress,
    published: watch::Sender<ChangeCounters>,
}

/// Numbers of changes that this process made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChangeCounters {
    pub changed: u64,
    pub claimable: u64,
}

/// Kind of a change that readers of the log may find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notification {
    /// New events, or the end of a transaction that held events back from readers.
    Events,
    /// Messages to claim, and events.
    Claimable,
}

impl LogState {
    pub fn published(&self) -> watch::Receiver<ChangeCounters> {
        self.published.subscribe()
    }

    /// Wakes the readers of this process and of all others. Called also after a rollback: until
    /// then the transaction held the events of others back.
    pub fn publish(&self, notification: Notification) {
        self.notify(notification);
        self.published.send_modify(|counters| {
            counters.changed = counters.changed.wrapping_add(1);
            if notification == Notification::Claimable {
                counters.claimable = counters.claimable.wrapping_add(1);
            }
        });
    }

    /// Wakes the readers of this process.
    pub fn notify(&self, notification: Notification) {
        self.progress.notify_changed();
        if notification == Notification::Claimable {
            self.progress.notify_claimable();
        }
    }
}
