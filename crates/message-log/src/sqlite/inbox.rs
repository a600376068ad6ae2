//! Inbox of the writer, and the time that operations wait in it.
//!
//! The writer takes all operations as soon as it is free. An operation waits at most for the group
//! before it, and for earlier batches of its own group. There are two exceptions.
//!
//! First, a final outcome of a message without an ordering key may wait, and so may new messages
//! that ended with their first attempts: until 5 ms have passed since the writer last took an
//! append. So they share a commit with the next append. Otherwise each message would cost two
//! commits, and the second would delay the next message. Such an operation does not wake a writer
//! that wakes by itself within that time.
//!
//! Second, a group of appends may wait. When many callers append at once, those that were just
//! answered append again within a moment. The writer expects as many appends as the last group with
//! appends had, plus those that arrived while it wrote. It waits until that many have arrived. The
//! longest wait is [`GATHER_FACTOR`] times the duration of the last group, and never more than
//! [`MAX_GATHER_TIME`]. A few callers never wait. On a fast disk the writer waits for
//! [`MAX_GATHERED`] messages only: while it writes these the others arrive, so that neither the
//! disk nor the cores are idle. On a slow disk it is worthwhile to commit the messages of all
//! callers together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::operation::Work;
use crate::Lease;
use crate::attempted::AttemptedRow;
use crate::change::Change;
use crate::effect::ReleaseSink;

/// Time after the writer took an append within which the next one is expected.
const LINGER: Duration = Duration::from_millis(5);
/// Longest gathering, as a multiple of the time that the last group took. The factor is large,
/// because callers need much more time for their next append than the journal needs for a record.
const GATHER_FACTOR: u32 = 16;
/// Longest gathering in any case.
const MAX_GATHER_TIME: Duration = Duration::from_millis(4);
/// Duration of a group from which the disk counts as slow.
const SLOW_GROUP: Duration = Duration::from_millis(4);
/// Messages of the last group below which the writer does not gather.
const MIN_GROUP: usize = 4;
/// Messages that end a gathering on a fast disk, however many callers append.
const MAX_GATHERED: usize = 32;
/// Most operations that wait for an append. When one more arrives, the writer takes all of them
/// without lingering.
const MAX_LINGERING_OPERATIONS: usize = 64;

/// Work that waits for the writer.
pub(super) struct Operation {
    pub work: Work,
    /// `None` if no caller waits for the reply.
    pub reply: Option<ReplySender>,
}

/// Sender of the reply to one caller.
pub(super) struct ReplySender {
    sender: oneshot::Sender<ReplyGuard>,
    /// Place of the operation in the inbox, which is free again after the reply.
    _permit: OwnedSemaphorePermit,
}

pub(super) type ReplyGuard = crate::effect::ReplyGuard<Lease, Arc<Inbox>>;

impl ReplySender {
    pub fn new(sender: oneshot::Sender<ReplyGuard>, permit: OwnedSemaphorePermit) -> Self {
        Self {
            sender,
            _permit: permit,
        }
    }

    /// Replies. If the caller has gone away, dropping the reply gives back the leases in it.
    pub fn send(self, reply: ReplyGuard) {
        let _ = self.sender.send(reply);
    }
}

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// Bytes of all operations that are not answered yet, also of those being written.
    unanswered_bytes: AtomicUsize,
}

/// Reason why [`Inbox::take`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakeup {
    /// There are operations.
    Operations,
    /// No operation arrived in time.
    TimedOut,
    /// No operation will arrive any more.
    Closed,
}

#[derive(Default)]
struct State {
    operations: Vec<Operation>,
    /// True if one of the operations must not wait.
    is_urgent: bool,
    /// True while the writer sleeps and was not woken yet.
    is_asleep: bool,
    /// True if the sleeping writer wakes by itself soon.
    wakes_soon: bool,
    is_closed: bool,
    /// Time at which the writer last took an append.
    last_append_at: Option<Instant>,
    /// Number of appends in `operations`.
    appends: usize,
    /// Number of appends in the last group that had any. A group without appends leaves it.
    last_append_group_size: usize,
    /// Number of appends to expect before the next group: `last_append_group_size`, and those that
    /// arrived while the writer wrote.
    expected_appends: usize,
    /// Time at which the writer began its last group; `None` after an idle time.
    group_began: Option<Instant>,
    /// Time at which the writer completed its last group.
    group_ended: Option<Instant>,
}

impl Inbox {
    /// Adds an operation. A closed inbox drops it, with its reply.
    pub fn push(&self, operation: Operation) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        self.unanswered_bytes
            .fetch_add(operation.work.size_bytes(), Ordering::Relaxed);
        let is_first = state.operations.is_empty();
        let was_urgent = state.is_urgent;
        state.is_urgent |=
            !operation.work.may_linger() || state.operations.len() >= MAX_LINGERING_OPERATIONS;
        state.appends += usize::from(matches!(operation.work, Work::Append(_)));
        state.operations.push(operation);
        // The first operation wakes a sleeping writer, unless that wakes within `LINGER` anyway.
        // The first urgent one always wakes it. The writer then computes how long they wait.
        let must_recompute_sleep =
            (is_first && !state.wakes_soon) || (state.is_urgent && !was_urgent);
        let is_ready = state.is_urgent && state.is_group_ready();
        if state.is_asleep && (must_recompute_sleep || is_ready) {
            state.is_asleep = false;
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Refuses all further operations.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Moves all operations into `taken`, which is empty. Sleeps until there are some, and no
    /// longer than `idle_timeout`, if that is given.
    pub fn take(&self, taken: &mut Vec<Operation>, idle_timeout: Option<Duration>) -> Wakeup {
        let mut state = self.state.lock();
        let called = Instant::now();
        state.group_ended = Some(called);
        state.expected_appends = state.last_append_group_size + state.appends;
        loop {
            let now = Instant::now();
            let limit = match (state.sleep(now), idle_timeout) {
                (Sleep::None, _) => break,
                (Sleep::Unlimited, Some(timeout)) => {
                    let left = timeout.saturating_sub(now.duration_since(called));
                    if left.is_zero() {
                        // An operation after an idle time belongs to no earlier group.
                        state.group_began = None;
                        return Wakeup::TimedOut;
                    }
                    Some(left)
                }
                (Sleep::Unlimited, None) => None,
                (Sleep::Limited(left), _) => Some(left),
            };
            state.is_asleep = true;
            state.wakes_soon = limit.is_some_and(|limit| limit <= LINGER);
            match limit {
                None => self.arrived.wait(&mut state),
                Some(limit) => {
                    self.arrived.wait_for(&mut state, limit);
                }
            }
            state.is_asleep = false;
        }
        if state.operations.is_empty() {
            return Wakeup::Closed;
        }
        state.is_urgent = false;
        if state.appends > 0 {
            state.last_append_at = Some(Instant::now());
            state.last_append_group_size = state.appends;
        }
        state.appends = 0;
        state.group_began = Some(Instant::now());
        std::mem::swap(&mut state.operations, taken);
        Wakeup::Operations
    }

    /// Subtracts the bytes of an operation from the unanswered ones, before its caller is answered.
    pub fn release_bytes(&self, work: &Work) {
        self.unanswered_bytes
            .fetch_sub(work.size_bytes(), Ordering::Relaxed);
    }

    /// Returns the bytes of all operations that are not answered yet, also of those being written.
    pub fn unanswered_bytes(&self) -> usize {
        self.unanswered_bytes.load(Ordering::Relaxed)
    }
}

impl ReleaseSink for Arc<Inbox> {
    fn release(&self, change: Change) {
        // A closed inbox drops the operation. Then the lease ends with its node.
        self.push(Operation {
            work: Work::Settle(Box::new(change)),
            reply: None,
        });
    }
}

/// Sleep of the writer before it takes the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    None,
    Limited(Duration),
    /// Sleep until an operation arrives.
    Unlimited,
}

impl Sleep {
    fn up_to(limit: Duration) -> Self {
        if limit.is_zero() {
            Self::None
        } else {
            Self::Limited(limit)
        }
    }
}

impl State {
    /// Returns whether the next group needs no more gathering: it has no appends, the last group
    /// with appends had few, or the expected appends have arrived.
    fn is_group_ready(&self) -> bool {
        let wanted = if self.last_duration() < SLOW_GROUP {
            self.expected_appends.min(MAX_GATHERED)
        } else {
            self.expected_appends
        };
        self.appends == 0 || self.last_append_group_size < MIN_GROUP || self.appends >= wanted
    }

    /// Returns how long the writer may go on gathering.
    fn gather_time_left(&self, now: Instant) -> Duration {
        let Some(ended) = self.group_ended else {
            return Duration::ZERO;
        };
        (self.last_duration() * GATHER_FACTOR)
            .min(MAX_GATHER_TIME)
            .saturating_sub(now.duration_since(ended))
    }

    /// Returns how long the last group took.
    fn last_duration(&self) -> Duration {
        let duration = self
            .group_ended
            .zip(self.group_began)
            .map(|(ended, began)| ended.duration_since(began));
        duration.unwrap_or_default()
    }

    /// Returns how long the writer sleeps before it takes the operations.
    fn sleep(&self, now: Instant) -> Sleep {
        if self.is_closed {
            return Sleep::None;
        }
        if self.is_urgent {
            return if self.is_group_ready() {
                Sleep::None
            } else {
                Sleep::up_to(self.gather_time_left(now))
            };
        }
        if self.operations.is_empty() {
            return Sleep::Unlimited;
        }
        match self.last_append_at {
            Some(at) => Sleep::up_to(LINGER.saturating_sub(now.duration_since(at))),
            None => Sleep::None,
        }
    }
}

impl Work {
    /// Returns whether this ends messages that no other message waits for, so that a delay costs
    /// only memory of the node.
    fn may_linger(&self) -> bool {
        match self {
            Self::Settle(change) => change.is_final_without_ordering_key(),
            Self::AppendAttempted(rows) => rows.iter().all(AttemptedRow::is_final),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
