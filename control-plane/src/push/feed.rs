//! The feed of one environment: reads from the store what was published, and keeps the current set for the sessions.
//! The first change after a quiet time is read at once; those that follow closely are read together.

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
        Self { environment, state: watch::Sender::default(), wanted: watch::Sender::default() }
    }

    /// The current set, and how fresh it is.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// There is a newer generation.
    pub fn wanted(&self, generation: u64) {
        self.wanted.send_modify(|wanted| wanted.generation = generation);
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
                    if read.others_changed {
                        hub.refusals.forget(&self.environment);
                    }
                    let changed = read.set.is_some();
                    self.state.send_modify(|state| {
                        state.reads += 1;
                        state.set = read.set.or(state.set.take());
                    });
                    return changed;
                }
                Err(error) => {
                    tracing::warn!(environment.id = %self.environment, %error, "cannot read what is published");
                    sleep(wait).await;
                    wait = (wait * 2).min(RETRY.1);
                }
            }
        }
    }

    /// Returns when the store should be read again, and whether someone asked for it.
    async fn wait(&self, wanted: &mut watch::Receiver<Wanted>, seen: Wanted, changed_at: Option<Instant>) -> bool {
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
