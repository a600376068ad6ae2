//! What waits for the writer, and how long the writer lets it wait.
//!
//! The writer takes all there is as soon as it is free: a group forms while the one before it
//! commits, and nothing lingers. But for one case: a message's end that nothing waits for. Where
//! messages keep coming, it goes to disk with the next of them, or each message would cost two
//! commits, and the second would stand in the way of the next message. It does not even wake a
//! writer that will wake by itself in time.
//!
//! And where many send at once, those who were just answered send again within a moment. A sender
//! waits for its answer, so there are at least as many of them as the last group had messages and
//! came while that one was written: the writer gathers so many before it begins the next group, for
//! some times as long as the last one took at most. A lone sender, or a few, never wait. But a disk
//! that is done before all could come again waits for dozens of them only: while it writes for
//! these the others send, so that neither it nor the cores stand still. A slow one is worth a
//! commit for all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::operation::{Operation, Work};
use crate::completed::CompletedRow;

/// How long after a message came in the next one is expected.
const COMPANY: Duration = Duration::from_millis(5);
/// Gathering takes so many times as long as the last group took at most: a record of the journal
/// takes a fraction of the time in which its senders come again,
const PATIENCE: u32 = 16;
/// and however long that was, no longer than this.
const GATHER: Duration = Duration::from_millis(4);
/// Groups of fewer messages are not gathered for.
const FEW: usize = 4;
/// A group that has so many is gathered, however many more send.
const DOZENS: usize = 32;
/// So many operations are worth a commit of their own.
const ENOUGH: usize = 64;

#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
    bytes: AtomicUsize,
}

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Operations,
    /// None came in the time.
    Nothing,
    /// None will come any more.
    Closed,
}

#[derive(Default)]
struct State {
    operations: Vec<Operation>,
    /// Some of them must not wait.
    urgent: bool,
    /// The writer sleeps, and nobody has woken it yet;
    asleep: bool,
    /// for a moment only.
    naps: bool,
    closed: bool,
    /// When the writer was last given a message that came in.
    came_in: Option<Instant>,
    /// Messages that came in and wait, and how many the last group had.
    appends: usize,
    last_appends: usize,
    /// How many had not been answered when the last group was done: its own, and those that came
    /// while it was written.
    senders: usize,
    /// When the writer began its last group, and when it was done with it.
    begun: Option<Instant>,
    free_since: Option<Instant>,
}

impl Inbox {
    /// Dropped, with its reply, when the inbox is closed.
    pub fn push(&self, operation: Operation) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        self.bytes
            .fetch_add(operation.work.size_bytes(), Ordering::Relaxed);
        let first = state.operations.is_empty();
        state.urgent |= !operation.work.can_wait() || state.operations.len() >= ENOUGH;
        state.appends += usize::from(matches!(operation.work, Work::Append(_)));
        state.operations.push(operation);
        // The first one wakes a writer that sleeps until it is woken: it sees how long there is to
        // wait.
        if state.asleep && (first && !state.naps || state.urgent && (first || state.gathered())) {
            state.asleep = false;
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Nothing more is taken in.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Moves all that waits into `taken`, which is empty; sleeps until there is something, and no
    /// longer than `idle` when that says how long.
    pub fn take(&self, taken: &mut Vec<Operation>, idle: Option<Duration>) -> Taken {
        let mut state = self.lock();
        let begun = Instant::now();
        state.free_since = Some(begun);
        state.senders = state.last_appends + state.appends;
        loop {
            let now = Instant::now();
            let pause = match (state.pause(now), idle) {
                (None, _) => break,
                (Some(None), Some(idle)) => match idle.checked_sub(now.duration_since(begun)) {
                    Some(left) if !left.is_zero() => Some(left),
                    _ => {
                        // What comes after a rest is no group's company.
                        state.begun = None;
                        return Taken::Nothing;
                    }
                },
                (Some(pause), _) => pause,
            };
            state.asleep = true;
            state.naps = pause.is_some_and(|pause| pause <= COMPANY);
            state = match pause {
                None => self
                    .arrived
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(pause) => {
                    self.arrived
                        .wait_timeout(state, pause)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            state.asleep = false;
        }
        if state.operations.is_empty() {
            return Taken::Closed;
        }
        state.urgent = false;
        if state.appends > 0 {
            state.came_in = Some(Instant::now());
            state.last_appends = state.appends;
        }
        state.appends = 0;
        state.begun = Some(Instant::now());
        std::mem::swap(&mut state.operations, taken);
        Taken::Operations
    }

    /// The bytes of an operation are held until it is answered.
    pub fn answered(&self, work: &Work) {
        self.bytes.fetch_sub(work.size_bytes(), Ordering::Relaxed);
    }

    /// Bytes of all that is not answered yet.
    pub fn queued_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether waiting longer is likely to bring little: only appends are waited for, and only
    /// while some have come.
    fn gathered(&self) -> bool {
        let wanted = if self.took() < GATHER {
            self.senders.min(DOZENS)
        } else {
            self.senders
        };
        self.appends == 0 || self.last_appends < FEW || self.appends >= wanted
    }

    /// How long the writer may go on gathering.
    fn gathering(&self, now: Instant) -> Duration {
        let Some(free) = self.free_since else {
            return Duration::ZERO;
        };
        (self.took() * PATIENCE)
            .min(GATHER)
            .saturating_sub(now.duration_since(free))
    }

    /// How long the last group took.
    fn took(&self) -> Duration {
        let took = self
            .free_since
            .zip(self.begun)
            .map(|(free, begun)| free.duration_since(begun));
        took.unwrap_or_default()
    }

    /// How long the writer is to sleep: not at all, or until it is woken, or for some time at most.
    fn pause(&self, now: Instant) -> Option<Option<Duration>> {
        if self.closed {
            return None;
        }
        if self.urgent {
            let left = self.gathering(now);
            return (!self.gathered() && !left.is_zero()).then_some(Some(left));
        }
        if self.operations.is_empty() {
            return Some(None);
        }
        let left = COMPANY.saturating_sub(now.duration_since(self.came_in?));
        (!left.is_zero()).then_some(Some(left))
    }
}

impl Work {
    /// The end of a message: only the message's own place in memory waits for it to be written.
    fn can_wait(&self) -> bool {
        match self {
            Self::Settle(change) => change.is_final() && !change.ordered,
            Self::AppendCompleted(rows) => rows.iter().all(CompletedRow::is_final),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lease;
    use crate::contract::message;
    use crate::sqlite::operation::Change;
    use kanat_model::Timestamp;
    use kanat_model::id::{BootId, FlowId, MessageId};
    use kanat_model::message::Status;

    fn end(ordered: bool) -> Operation {
        let lease = Lease {
            message_id: MessageId::new("msg_1"),
            seq: 1,
            owner: BootId::new("boot_1"),
            token: 1,
            ordered,
        };
        let now = Timestamp::from_millis(0);
        let change = Change {
            status: Some(Status::Delivered),
            due_at: None,
            ..Change::release(lease, now, Some(now))
        };
        Operation {
            work: Work::Settle(Box::new(change)),
            reply: None,
        }
    }

    #[test]
    fn an_end_waits_only_while_messages_come_in() {
        let now = Instant::now();
        let inbox = Inbox::default();
        inbox.push(end(false));
        let mut state = inbox.lock();
        assert_eq!(state.pause(now), None);
        state.came_in = Some(now);
        assert_eq!(state.pause(now), Some(Some(COMPANY)));
        assert_eq!(state.pause(now + COMPANY), None);
    }

    #[test]
    fn nothing_else_waits() {
        let now = Instant::now();
        let pause_after = |operations: Vec<Operation>| {
            let inbox = Inbox::default();
            inbox.lock().came_in = Some(now);
            operations
                .into_iter()
                .for_each(|operation| inbox.push(operation));
            inbox.lock().pause(now)
        };
        assert_eq!(pause_after(Vec::new()), Some(None));
        assert_eq!(pause_after(vec![end(false)]), Some(Some(COMPANY)));
        assert_eq!(pause_after(vec![end(false), end(true)]), None);
        assert_eq!(
            pause_after(vec![
                end(false),
                Operation {
                    work: Work::Truncate,
                    reply: None
                }
            ]),
            None
        );
        assert_eq!(
            pause_after((0..=ENOUGH).map(|_| end(false)).collect()),
            None
        );
    }

    #[test]
    fn a_group_gathers_as_many_as_had_no_answer_and_no_longer_than_a_few_groups_take() {
        let took = Duration::from_micros(200);
        let begun = Instant::now();
        let now = begun + took;
        let state = |appends, last_appends, came_meanwhile| State {
            urgent: true,
            operations: vec![end(true)],
            appends,
            last_appends,
            senders: last_appends + came_meanwhile,
            begun: Some(begun),
            free_since: Some(now),
            ..State::default()
        };
        assert_eq!(state(1, 1, 1).pause(now), None, "a lone sender");
        assert_eq!(state(1, FEW - 1, 1).pause(now), None, "a few");
        assert_eq!(state(9, 20, 0).pause(now), Some(Some(took * PATIENCE)));
        assert_eq!(state(20, 20, 0).pause(now), None, "all are there again");
        assert_eq!(
            state(20, 20, 10).pause(now),
            Some(Some(took * PATIENCE)),
            "two halves that take turns"
        );
        assert_eq!(state(30, 20, 10).pause(now), None);
        assert_eq!(state(31, 40, 24).pause(now), Some(Some(took * PATIENCE)));
        assert_eq!(
            state(32, 40, 24).pause(now),
            None,
            "the others come while these are written"
        );
        assert_eq!(state(9, 40, 9).pause(now + took * PATIENCE), None);
        assert_eq!(
            state(0, 40, 0).pause(now),
            None,
            "what is no message does not wait for any"
        );
        let slow = |appends| State {
            free_since: Some(begun + GATHER),
            ..state(appends, 40, 24)
        };
        assert_eq!(
            slow(40).pause(begun + GATHER),
            Some(Some(GATHER)),
            "a slow disk writes for all of them"
        );
        assert_eq!(slow(64).pause(begun + GATHER), None);
    }

    #[test]
    fn senders_are_those_of_the_last_group_and_those_who_came_meanwhile() {
        let append = || Operation {
            work: Work::Append(Box::new(message(&FlowId::new("flow_1")))),
            reply: None,
        };
        let inbox = Inbox::default();
        (0..5).for_each(|_| inbox.push(append()));
        let mut taken = Vec::new();
        inbox.take(&mut taken, None);
        assert_eq!(taken.len(), 5);
        (0..3).for_each(|_| inbox.push(append()));
        inbox.close();
        taken.clear();
        inbox.take(&mut taken, None);
        assert_eq!(inbox.lock().senders, 8);
    }

    #[test]
    fn a_closed_inbox_gives_what_it_has_and_takes_no_more() {
        let inbox = Inbox::default();
        inbox.push(end(false));
        inbox.close();
        inbox.push(end(false));
        let mut taken = Vec::new();
        assert_eq!(inbox.take(&mut taken, None), Taken::Operations);
        assert_eq!(taken.len(), 1);
        taken.clear();
        assert_eq!(inbox.take(&mut taken, None), Taken::Closed);
        assert!(taken.is_empty());
    }

    #[test]
    fn whoever_has_something_else_to_do_is_not_kept_by_an_empty_inbox() {
        let inbox = Inbox::default();
        let mut taken = Vec::new();
        assert_eq!(inbox.take(&mut taken, Some(Duration::ZERO)), Taken::Nothing);
        inbox.push(end(true));
        assert_eq!(
            inbox.take(&mut taken, Some(Duration::ZERO)),
            Taken::Operations
        );
    }
}
