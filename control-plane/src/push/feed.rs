//! The feed of one environment: reads from the store what was published, and keeps the current set
//! for the sessions. The first change after a quiet time is read at once; those that follow closely
//! are read together.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::id::EnvironmentId;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::hub::Hub;
use super::set::Set;

/// A burst has passed when nothing changed for this long.
const QUIET: Duration = Duration::from_millis(50);

/// No change waits longer than this for a burst to pass.
const AT_MOST: Duration = Duration::from_millis(500);

/// First and longest wait after a failed read.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// One environment's current set.
#[derive(Debug)]
pub struct Feed {
    environment: EnvironmentId,
    state: watch::Sender<State>,
    wanted: watch::Sender<Wanted>,
}

/// What the feed knows.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// None before the first read that succeeded.
    pub set: Option<Arc<Set>>,
    /// Reads that succeeded.
    pub reads: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Wanted {
    generation: u64,
    /// How often it must not wait.
    urgent: u64,
}

impl Feed {
    pub fn new(environment: EnvironmentId) -> Self {
        Self {
            environment,
            state: watch::Sender::default(),
            wanted: watch::Sender::default(),
        }
    }

    /// The current set, and how fresh it is.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// There is a newer generation.
    pub fn wanted(&self, generation: u64) {
        self.wanted
            .send_modify(|wanted| wanted.generation = generation);
    }

    /// There is a newer generation, and it must not wait for others.
    pub fn wanted_now(&self, generation: u64) {
        self.wanted.send_modify(|wanted| {
            wanted.generation = generation;
            wanted.urgent += 1;
        });
    }

    /// Follows the store until it is dropped.
    pub(super) async fn run(&self, hub: &Hub) {
        let mut wanted = self.wanted.subscribe();
        let mut changed_at = None;
        let mut asked = true;
        loop {
            // What is asked for from here on, the read below may have missed.
            let seen = *wanted.borrow_and_update();
            let changed = self.read_until_it_succeeds(hub).await;
            if changed {
                changed_at = Some(Instant::now());
            }
            if changed || asked {
                hub.sets_changed();
            }
            asked = self.wait(&mut wanted, seen, changed_at).await;
        }
    }

    /// Gives whether the set changed. A failed read changes nothing and is tried again.
    async fn read_until_it_succeeds(&self, hub: &Hub) -> bool {
        let mut wait = RETRY.0;
        loop {
            let current = self.state().set;
            match hub.source.read(&self.environment, current.as_ref()).await {
                Ok(read) => {
                    if let Some(set) = read.set.as_ref().filter(|_| read.refused_may_run) {
                        hub.refusals.forget(&self.environment, set.generation);
                    }
                    let changed = read.set.is_some();
                    self.state.send_modify(|state| {
                        state.reads += 1;
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
                    sleep(wait).await;
                    wait = (wait * 2).min(RETRY.1);
                }
            }
        }
    }

    /// Returns when the store should be read again, and whether someone asked for it.
    async fn wait(
        &self,
        wanted: &mut watch::Receiver<Wanted>,
        seen: Wanted,
        changed_at: Option<Instant>,
    ) -> bool {
        if wanted.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        if changed_at.is_none_or(|at| at.elapsed() >= QUIET) {
            return true;
        }
        let latest = Instant::now() + AT_MOST;
        let mut quiet = Instant::now() + QUIET;
        while wanted.borrow().urgent == seen.urgent {
            match timeout_at(quiet.min(latest), wanted.changed()).await {
                Ok(_) => quiet = Instant::now() + QUIET,
                Err(_) => break,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a change waits that comes `since` after the one that was read last, while others
    /// follow at these times after it, the last of them an urgent one if `urgent`.
    async fn waits(since: u64, others: &[u64], urgent: bool) -> u64 {
        let feed = Feed::new(EnvironmentId::from("env_1"));
        let mut wanted = feed.wanted.subscribe();
        let seen = *wanted.borrow_and_update();
        let changed_at = Instant::now();
        tokio::time::advance(Duration::from_millis(since)).await;
        let begun = Instant::now();
        feed.wanted(1);
        let changes = async {
            for (n, at) in others.iter().enumerate() {
                tokio::time::sleep_until(begun + Duration::from_millis(*at)).await;
                let say: fn(&Feed, u64) = if urgent && n + 1 == others.len() {
                    Feed::wanted_now
                } else {
                    Feed::wanted
                };
                say(&feed, n as u64 + 2);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = changes => {}
            asked = feed.wait(&mut wanted, seen, Some(changed_at)) => assert!(asked),
        }
        begun.elapsed().as_millis() as u64
    }

    /// The clock counts whole milliseconds.
    fn is(waited: u64, expected: u64) -> bool {
        (expected..=expected + 1).contains(&waited)
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_after_a_quiet_time_waits_for_no_other() {
        assert_eq!(waits(50, &[], false).await, 0);
        assert_eq!(waits(60_000, &[1, 2, 3], false).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_follow_closely_wait_for_fifty_milliseconds_of_quiet() {
        assert!(is(waits(10, &[], false).await, 50));
        assert!(is(waits(10, &[40], false).await, 90));
        assert!(is(waits(0, &[30, 70, 110, 200], false).await, 160));
    }

    #[tokio::test(start_paused = true)]
    async fn no_change_waits_for_longer_than_half_a_second() {
        let others: Vec<u64> = (1..100).map(|n| n * 20).collect();
        assert!(is(waits(10, &others, false).await, 500));
    }

    #[tokio::test(start_paused = true)]
    async fn an_urgent_change_ends_the_wait_of_all() {
        assert!(is(waits(10, &[20], true).await, 20));
        assert!(is(waits(10, &[20, 45, 70], true).await, 70));
    }
}
