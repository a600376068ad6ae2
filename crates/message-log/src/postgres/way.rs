//! The end of a way to the writers, where operations become groups.
//!
//! What a transaction costs the database is its own for the larger part, unless it writes dozens of
//! messages. So however many writers are free, a group gathers while any other is written: until
//! none is, or there is as much as is worth a transaction beside them, or they take so long that
//! they may be held up. When none is written, nothing waits.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::operation::Operation;

/// Most operations that are taken at once.
pub(super) const MOST: usize = 1_024;
/// So many are written beside another group.
const ENOUGH: usize = 64;
/// Nothing waits for longer than this for another group to be written.
const PATIENCE: Duration = Duration::from_millis(5);

/// What the writers of one way share.
pub(super) struct Way {
    /// Whoever has it gathers.
    inbox: Mutex<mpsc::Receiver<Operation>>,
    closing: CancellationToken,
    /// Groups that are being written.
    writing: AtomicUsize,
    /// One of them is done.
    done: Notify,
}

/// A group is being written, until this is dropped.
pub(super) struct Turn(Arc<Way>);

impl Way {
    pub fn new(inbox: mpsc::Receiver<Operation>, closing: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            inbox: Mutex::new(inbox),
            closing,
            writing: AtomicUsize::new(0),
            done: Notify::new(),
        })
    }

    /// Puts the next group into `queued`, which is empty; `None` when nothing more will come.
    pub async fn next(self: &Arc<Self>, queued: &mut Vec<Operation>) -> Option<Turn> {
        let mut inbox = self.inbox.lock().await;
        if !inbox.is_closed() {
            tokio::select! {
                _ = inbox.recv_many(queued, MOST) => self.gather(&mut inbox, queued).await,
                () = self.closing.cancelled() => inbox.close(),
            }
        }
        if queued.is_empty() && inbox.recv_many(queued, MOST).await == 0 {
            return None;
        }
        self.writing.fetch_add(1, Ordering::Relaxed);
        Some(Turn(Arc::clone(self)))
    }

    async fn gather(&self, inbox: &mut mpsc::Receiver<Operation>, queued: &mut Vec<Operation>) {
        // Made once: each operation that comes wakes this.
        let mut late = pin!(sleep(PATIENCE));
        let mut closing = pin!(self.closing.cancelled());
        while self.writing.load(Ordering::Relaxed) > 0
            && queued.len() < ENOUGH
            && !inbox.is_closed()
        {
            tokio::select! {
                _ = inbox.recv_many(queued, MOST - queued.len()) => {}
                () = self.done.notified() => {}
                () = &mut late => return,
                () = &mut closing => return,
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.writing.fetch_sub(1, Ordering::Relaxed);
        // Only one gathers at a time; nobody may, and then who gathers next looks once too often.
        self.0.done.notify_one();
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
    use crate::postgres::operation::{Change, Work};

    struct Fixture {
        way: Arc<Way>,
        sender: mpsc::Sender<Operation>,
        closing: CancellationToken,
    }

    impl Fixture {
        fn new() -> Self {
            let (sender, inbox) = mpsc::channel(MOST);
            let closing = CancellationToken::new();
            Self {
                way: Way::new(inbox, closing.clone()),
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
        fn now(&self) -> Option<(Turn, usize)> {
            let mut queued = Vec::new();
            let turn = self.way.next(&mut queued).now_or_never()??;
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
        let mut next = Box::pin(fixture.way.next(&mut queued));
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
        fixture.send(ENOUGH);
        assert_eq!(fixture.now().unwrap().1, ENOUGH);
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_is_held_up_holds_up_no_other() {
        let fixture = Fixture::new();
        fixture.send(1);
        let _held_up = fixture.now().unwrap();
        fixture.send(2);
        let begun = Instant::now();
        let mut queued = Vec::new();
        assert!(fixture.way.next(&mut queued).await.is_some());
        assert_eq!(queued.len(), 2);
        assert_eq!(begun.elapsed(), PATIENCE);
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
        let Fixture { way, sender, .. } = fixture;
        drop(sender);
        let mut queued = Vec::new();
        assert!(way.next(&mut queued).now_or_never().flatten().is_some());
        assert_eq!(queued.len(), 2);
    }
}
