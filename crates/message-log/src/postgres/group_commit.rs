//! The group commit queue: it gathers operations into groups for the writers.
//!
//! Most of the cost of a transaction does not depend on its size, unless it writes dozens of
//! messages. So a group gathers while another one is written, however many writers are free, until
//! none is written, it has [`MIN_CONCURRENT_GROUP`] operations, or [`MAX_GATHER_TIME`] has passed.
//! When no group is written, no operation waits.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::operation::Operation;

/// Most operations in a group.
pub(super) const MAX_GROUP: usize = 1_024;
/// Operations that make a group worth a transaction beside another one.
const MIN_CONCURRENT_GROUP: usize = 64;
/// Longest time for which operations wait for another group to be written.
const MAX_GATHER_TIME: Duration = Duration::from_millis(5);

/// A queue of operations that several writers empty group by group.
pub(super) struct GroupCommitQueue {
    /// Locked by the writer that gathers.
    inbox: Mutex<mpsc::Receiver<Operation>>,
    closing: CancellationToken,
    /// Number of groups that are being written.
    in_flight: AtomicUsize,
    /// Notified when a group was written.
    written: Notify,
}

/// Counts a group as being written until it is dropped.
pub(super) struct InFlightGroup(Arc<GroupCommitQueue>);

impl GroupCommitQueue {
    pub fn new(inbox: mpsc::Receiver<Operation>, closing: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            inbox: Mutex::new(inbox),
            closing,
            in_flight: AtomicUsize::new(0),
            written: Notify::new(),
        })
    }

    /// Puts the next group into `queued`, which is empty. `None` when the queue is closed and
    /// empty.
    pub async fn next(self: &Arc<Self>, queued: &mut Vec<Operation>) -> Option<InFlightGroup> {
        let mut inbox = self.inbox.lock().await;
        if !inbox.is_closed() {
            tokio::select! {
                _ = inbox.recv_many(queued, MAX_GROUP) => self.gather(&mut inbox, queued).await,
                () = self.closing.cancelled() => inbox.close(),
            }
        }
        if queued.is_empty() && inbox.recv_many(queued, MAX_GROUP).await == 0 {
            return None;
        }
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Some(InFlightGroup(Arc::clone(self)))
    }

    async fn gather(&self, inbox: &mut mpsc::Receiver<Operation>, queued: &mut Vec<Operation>) {
        // Made once, since each operation that arrives wakes this task.
        let mut timeout = pin!(sleep(MAX_GATHER_TIME));
        let mut closing = pin!(self.closing.cancelled());
        while self.in_flight.load(Ordering::Relaxed) > 0
            && queued.len() < MIN_CONCURRENT_GROUP
            && !inbox.is_closed()
        {
            tokio::select! {
                _ = inbox.recv_many(queued, MAX_GROUP - queued.len()) => {}
                () = self.written.notified() => {}
                () = &mut timeout => return,
                () = &mut closing => return,
            }
        }
    }
}

impl Drop for InFlightGroup {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        // One writer gathers at a time. If none does, the next one checks the count once more than
        // it has to.
        self.0.written.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kanat_model::Timestamp;
    use kanat_model::id::{BootId, MessageId};
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;
    use crate::Lease;
    use crate::change::Change;
    use crate::postgres::operation::Work;

    struct Fixture {
        queue: Arc<GroupCommitQueue>,
        sender: mpsc::Sender<Operation>,
        closing: CancellationToken,
    }

    impl Fixture {
        fn new() -> Self {
            let (sender, inbox) = mpsc::channel(MAX_GROUP);
            let closing = CancellationToken::new();
            Self {
                queue: GroupCommitQueue::new(inbox, closing.clone()),
                sender,
                closing,
            }
        }

        fn send(&self, count: usize) {
            for _ in 0..count {
                let message_id = MessageId::new("msg_1");
                let owner = BootId::new("boot_1");
                let lease = Lease {
                    message_id,
                    seq: 1,
                    owner,
                    token: 1,
                    ordered: false,
                };
                let work = Work::Settle(Box::new(Change::release(lease, Timestamp::now(), None)));
                let (reply, _) = oneshot::channel();
                self.sender
                    .try_send(Operation { work, reply })
                    .ok()
                    .unwrap();
            }
        }

        /// The next group, if there is one at this moment.
        fn now(&self) -> Option<(InFlightGroup, usize)> {
            let mut queued = Vec::new();
            let turn = self.queue.next(&mut queued).now_or_never()??;
            Some((turn, queued.len()))
        }
    }

    #[tokio::test]
    async fn nothing_waits_when_no_group_is_written() {
        let fixture = Fixture::new();
        fixture.send(1);
        let (turn, first) = fixture.now().unwrap();
        drop(turn);
        fixture.send(3);
        assert_eq!(first, 1);
        assert_eq!(fixture.now().unwrap().1, 3);
    }

    #[tokio::test]
    async fn a_group_gathers_until_another_is_written() {
        let fixture = Fixture::new();
        fixture.send(1);
        let (turn, _) = fixture.now().unwrap();
        fixture.send(2);
        let mut queued = Vec::new();
        let mut next = Box::pin(fixture.queue.next(&mut queued));
        assert!((&mut next).now_or_never().is_none());
        fixture.send(3);
        assert!((&mut next).now_or_never().is_none());
        drop(turn);
        assert!(next.await.is_some());
        assert_eq!(queued.len(), 5);
    }

    #[tokio::test]
    async fn what_is_worth_a_transaction_is_written_beside_another() {
        let fixture = Fixture::new();
        fixture.send(1);
        let _first = fixture.now().unwrap();
        fixture.send(MIN_CONCURRENT_GROUP);
        assert_eq!(fixture.now().unwrap().1, MIN_CONCURRENT_GROUP);
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_is_held_up_holds_up_no_other() {
        let fixture = Fixture::new();
        fixture.send(1);
        let _held_up = fixture.now().unwrap();
        fixture.send(2);
        let begun = Instant::now();
        let mut queued = Vec::new();
        assert!(fixture.queue.next(&mut queued).await.is_some());
        assert_eq!(queued.len(), 2);
        assert_eq!(begun.elapsed(), MAX_GATHER_TIME);
    }

    #[tokio::test]
    async fn what_is_queued_when_the_log_closes_is_written_yet() {
        let fixture = Fixture::new();
        fixture.send(1);
        let _first = fixture.now().unwrap();
        fixture.send(2);
        fixture.closing.cancel();
        assert_eq!(fixture.now().unwrap().1, 2);
        assert!(fixture.now().is_none());
        assert!(fixture.sender.is_closed());
    }

    #[tokio::test]
    async fn nothing_waits_for_senders_that_are_gone() {
        let fixture = Fixture::new();
        fixture.send(1);
        let _first = fixture.now().unwrap();
        fixture.send(2);
        let Fixture { queue, sender, .. } = fixture;
        drop(sender);
        let mut queued = Vec::new();
        assert!(queue.next(&mut queued).now_or_never().flatten().is_some());
        assert_eq!(queued.len(), 2);
    }
}
