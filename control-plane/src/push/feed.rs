//! The feed of one environment: reads from the store what was published, and keeps the current set
//! for the sessions. The first change after a quiet time is read at once; those that follow closely
//! are read together.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::backoff::Backoff;
use kanat_model::id::EnvironmentId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::refusals::Refusals;
use super::set::PlanSet;
use super::source::Source;

/// Time without a change after which a burst of changes has passed.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// Longest time that a change waits for a burst to pass.
const MAX_BURST: Duration = Duration::from_millis(500);

/// Delays after failed reads.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(200),
    max: Duration::from_secs(5),
};

/// Current set of one environment.
#[derive(Debug)]
pub struct Feed {
    environment: EnvironmentId,
    source: Source,
    refusals: Arc<Refusals>,
    state: watch::Sender<State>,
    /// Wakes the feed at every request to read the store. The value counts the urgent ones, which
    /// end a wait for a burst.
    read_requests: watch::Sender<u64>,
    /// Notified after each read of any feed, whether its set changed or not.
    any_feed_read: watch::Sender<()>,
}

/// State of a feed.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Latest set; none before the first read that succeeded.
    pub set: Option<Arc<PlanSet>>,
    /// Number of reads that have begun.
    pub reads_begun: u64,
    /// Value that `reads_begun` had when the latest successful read began; 0 before the first.
    pub last_successful_read_number: u64,
}

/// Urgency of a change: `Batched` waits a moment for others that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    Batched,
    Immediate,
}

impl Feed {
    pub fn new(
        environment: EnvironmentId,
        source: Source,
        refusals: Arc<Refusals>,
        any_feed_read: watch::Sender<()>,
    ) -> Self {
        Self {
            environment,
            source,
            refusals,
            state: watch::Sender::default(),
            read_requests: watch::Sender::default(),
            any_feed_read,
        }
    }

    /// Returns the current set and the counts of reads.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Requests a read of the store, which has changed.
    pub fn request_read(&self, urgency: Urgency) {
        request_read(&self.read_requests, urgency);
    }

    /// Follows the store until the future is dropped.
    pub async fn run(&self) {
        let mut requested = self.read_requests.subscribe();
        let mut changed_at = None;
        loop {
            // The read below may miss what is requested from here on.
            let seen = *requested.borrow_and_update();
            if self.read().await {
                changed_at = Some(Instant::now());
            }
            self.any_feed_read.send_replace(());
            next_read(&mut requested, seen, changed_at).await;
        }
    }

    /// Reads the store until that succeeds, and returns whether the set changed.
    async fn read(&self) -> bool {
        let mut failures = 0;
        loop {
            let mut number = 0;
            self.state.send_modify(|state| {
                state.reads_begun += 1;
                number = state.reads_begun;
            });
            let current = self.state().set;
            match self.source.read(&self.environment, current.as_ref()).await {
                Ok(read) => {
                    if let Some(set) = read.set.as_ref().filter(|_| read.clears_refusals) {
                        self.refusals.forget(&self.environment, set.generation);
                    }
                    let changed = read.set.is_some();
                    self.state.send_modify(|state| {
                        state.last_successful_read_number = number;
                        state.set = read.set.or(state.set.take());
                    });
                    return changed;
                }
                Err(error) => {
                    tracing::warn!(
                        environment.id = %self.environment,
                        %error,
                        "cannot read what is published",
                    );
                    failures += 1;
                    sleep(RETRY.delay(failures)).await;
                }
            }
        }
    }
}

fn request_read(requested: &watch::Sender<u64>, urgency: Urgency) {
    requested.send_modify(|urgent| *urgent += u64::from(urgency == Urgency::Immediate));
}

/// Waits until the store is to be read again: until the next request or, when the last change was a
/// moment ago, until a burst of requests has passed. An urgent request ends the wait.
async fn next_read(requested: &mut watch::Receiver<u64>, seen: u64, changed_at: Option<Instant>) {
    if requested.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
    if changed_at.is_none_or(|at| at.elapsed() >= QUIET_TIME) {
        return;
    }
    let latest = Instant::now() + MAX_BURST;
    let mut quiet = Instant::now() + QUIET_TIME;
    while *requested.borrow() == seen {
        match timeout_at(quiet.min(latest), requested.changed()).await {
            Ok(_) => quiet = Instant::now() + QUIET_TIME,
            Err(_) => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds that a change waits that comes `since` after the last one that was read, while
    /// others follow at these times after it, the last of them with this urgency.
    async fn waits(since: u64, others: &[u64], last: Urgency) -> u64 {
        let sender = watch::Sender::default();
        let mut requested = sender.subscribe();
        let seen = *requested.borrow_and_update();
        let changed_at = Instant::now();
        tokio::time::advance(Duration::from_millis(since)).await;
        let begun = Instant::now();
        request_read(&sender, Urgency::Batched);
        let changes = async {
            for (n, at) in others.iter().enumerate() {
                tokio::time::sleep_until(begun + Duration::from_millis(*at)).await;
                let is_last = n + 1 == others.len();
                let urgency = if is_last { last } else { Urgency::Batched };
                request_read(&sender, urgency);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = changes => {}
            () = next_read(&mut requested, seen, Some(changed_at)) => {}
        }
        begun.elapsed().as_millis() as u64
    }

    /// The clock counts whole milliseconds.
    fn is(waited: u64, expected: u64) -> bool {
        (expected..=expected + 1).contains(&waited)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_after_a_quiet_time_waits_for_no_other() {
        assert_eq!(waits(50, &[], Urgency::Batched).await, 0);
        assert_eq!(waits(60_000, &[1, 2, 3], Urgency::Batched).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_follow_closely_wait_for_fifty_milliseconds_of_quiet() {
        assert!(is(waits(10, &[], Urgency::Batched).await, 50));
        assert!(is(waits(10, &[40], Urgency::Batched).await, 90));
        assert!(is(
            waits(0, &[30, 70, 110, 200], Urgency::Batched).await,
            160
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn no_change_waits_for_longer_than_half_a_second() {
        let others: Vec<u64> = (1..100).map(|n| n * 20).collect();
        assert!(is(waits(10, &others, Urgency::Batched).await, 500));
    }

    #[tokio::test(start_paused = true)]
    async fn an_urgent_change_ends_the_wait_of_all() {
        assert!(is(waits(10, &[20], Urgency::Immediate).await, 20));
        assert!(is(waits(10, &[20, 45, 70], Urgency::Immediate).await, 70));
    }
}
