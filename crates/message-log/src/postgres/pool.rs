//! Connections for many callers, in a pool that is left for a new one when it has answered nobody for too long.
//!
//! The driver asks a connection that comes back whether it still answers, and waits for that without an end: one that falls
//! silent just then keeps its place until the kernel gives it up. When all places are such, only another pool helps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgPool};

use super::failure::answered;

/// A connection that was in use goes back when it has answered within that time; otherwise it ends.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// A cheap handle.
#[derive(Clone)]
pub(super) struct Pool {
    current: Arc<Mutex<PgPool>>,
    options: PgPoolOptions,
    connect: PgConnectOptions,
    patience: Duration,
    unanswered: Unanswered,
}

/// Since when callers ask for a connection and nobody gets one.
#[derive(Debug, Clone, Default)]
struct Unanswered(Arc<Mutex<Option<Instant>>>);

impl Pool {
    /// Of connections made by `connect`, when they are asked for.
    pub fn new(options: PgPoolOptions, connect: PgConnectOptions, patience: Duration) -> Self {
        let unanswered = Unanswered::default();
        let [connected, acquired, released] = [(); 3].map(|()| unanswered.clone());
        let options = options
            .after_connect(move |_, _| {
                connected.ends();
                Box::pin(async { Ok(()) })
            })
            .before_acquire(move |_, _| {
                acquired.ends();
                Box::pin(async { Ok(true) })
            })
            .after_release(move |connection, _| {
                let released = released.clone();
                Box::pin(async move {
                    answered(RELEASE_WITHIN, connection.ping()).await?;
                    released.ends();
                    Ok(true)
                })
            });
        let current = options.clone().connect_lazy_with(connect.clone());
        Self { current: Arc::new(Mutex::new(current)), options, connect, patience, unanswered }
    }

    /// For a call that begins now.
    pub fn current(&self) -> PgPool {
        let mut current = lock(&self.current);
        if !current.is_closed() && self.unanswered.for_longer_than(self.patience) {
            tracing::warn!("no connection of the message log answers any more: they are left, and new ones made");
            *current = self.options.clone().connect_lazy_with(self.connect.clone());
        }
        current.clone()
    }

    /// Ends the connections, once they are idle.
    pub async fn close(&self) {
        let current = lock(&self.current).clone();
        current.close().await;
    }
}

impl Unanswered {
    /// Notes that somebody asks; gives whether nobody was answered for that long, and counts anew if so.
    fn for_longer_than(&self, patience: Duration) -> bool {
        let mut since = lock(&self.0);
        let now = Instant::now();
        let first = since.unwrap_or(now);
        let is_longer = now.saturating_duration_since(first) > patience;
        *since = Some(if is_longer { now } else { first });
        is_longer
    }

    fn ends(&self) {
        *lock(&self.0) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
