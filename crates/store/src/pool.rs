//! The store's connections, in a pool that is left for a new one when it has answered nobody for too long.
//!
//! The driver asks a connection that comes back whether it still answers, and waits for that without an end: one that falls
//! silent just then keeps its place until the kernel gives it up. When all places are such, only another pool helps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kanat_model::Secret;
use sqlx::any::AnyPoolOptions;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyPool, Connection};

use crate::db;
use crate::dialect::Dialect;

/// A connection that was in use goes back when it has answered within that time; otherwise it ends.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// A call that finds no free connection for so long fails.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(10);

/// A cheap handle.
#[derive(Clone)]
pub(crate) struct Pool {
    current: Arc<Mutex<AnyPool>>,
    options: AnyPoolOptions,
    url: Secret<String>,
    /// None where no connection falls silent: SQLite is in the process.
    patience: Option<Duration>,
    unanswered: Unanswered,
}

/// Since when callers ask for a connection and nobody gets one.
#[derive(Debug, Clone, Default)]
struct Unanswered(Arc<Mutex<Option<Instant>>>);

impl Pool {
    /// Errors when there is no database at `url`.
    pub async fn connect(
        url: &Secret<String>,
        dialect: Dialect,
        connections: u32,
        patience: Duration,
    ) -> Result<Self, sqlx::Error> {
        let unanswered = Unanswered::default();
        let [connected, acquired, released] = [(); 3].map(|()| unanswered.clone());
        let options = AnyPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_WITHIN.min(3 * patience))
            .after_connect(move |connection, _| {
                let connected = connected.clone();
                Box::pin(async move {
                    for statement in dialect.connection_setup() {
                        sqlx::query(*statement).execute(&mut *connection).await?;
                    }
                    connected.ends();
                    Ok(())
                })
            })
            .before_acquire(move |_, _| {
                acquired.ends();
                Box::pin(async { Ok(true) })
            })
            .after_release(move |connection, _| {
                let released = released.clone();
                Box::pin(async move {
                    db::answered(RELEASE_WITHIN.min(patience), connection.ping()).await?;
                    released.ends();
                    Ok(true)
                })
            });
        let current = options.clone().connect(url.expose()).await?;
        let patience = (dialect == Dialect::Postgres).then_some(patience);
        Ok(Self { current: Arc::new(Mutex::new(current)), options, url: url.clone(), patience, unanswered })
    }

    /// A connection for one caller.
    pub async fn acquire(&self) -> Result<PoolConnection<Any>, sqlx::Error> {
        let pool = self.current()?;
        pool.acquire().await
    }

    fn current(&self) -> Result<AnyPool, sqlx::Error> {
        let mut current = lock(&self.current);
        let is_of_no_use = self.patience.is_some_and(|patience| self.unanswered.for_longer_than(patience));
        if is_of_no_use && !current.is_closed() {
            tracing::warn!(
                "no connection of the configuration store answers any more: they are left, and new ones made"
            );
            *current = self.options.clone().connect_lazy(self.url.expose())?;
        }
        Ok(current.clone())
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
