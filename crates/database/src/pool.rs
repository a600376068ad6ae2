//! Connections for many callers, in a pool that is replaced by a new one when another server is the
//! primary, and when it has given out no connection for too long.
//!
//! The driver asks a connection that comes back whether it still answers, and waits for that
//! without an end: one that falls silent just then keeps its place until the kernel gives it up.
//! When all places are such, only another pool helps.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolOptions;
use sqlx::{Connection, Database, Executor};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::servers::{ADMIT, Primary};
use crate::{Servers, silent};

/// A connection that was in use goes back when it has answered within that time and no transaction
/// of it is left open; otherwise it ends.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// How a database is connected to.
pub type Connect<DB> = <<DB as Database>::Connection as Connection>::Options;

/// A cheap handle.
pub struct Pool<DB: Database> {
    current: Arc<Mutex<Current<DB>>>,
    options: PoolOptions<DB>,
    /// How each server of the list is connected to.
    connects: Arc<[Connect<DB>]>,
    primary: watch::Receiver<Option<Primary>>,
    settings: Settings,
    unanswered: SilentSince,
}

/// The connections that are in use, and the server that they are made to.
struct Current<DB: Database> {
    pool: sqlx::Pool<DB>,
    primary: Option<Primary>,
}

/// Settings of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whose connections they are, for the log of the process, as in `the message log`.
    pub of: &'static str,
    /// Most connections at once.
    pub connections: u32,
    /// Time after which a call without a free connection fails.
    pub acquire_within: Duration,
    /// Time without an answer after which the pool is replaced; `None` where no connection falls
    /// silent.
    pub patience: Option<Duration>,
    /// Statements that each new connection begins with.
    pub setup: &'static [&'static str],
}

/// Instant since which callers ask for a connection and none gets one.
#[derive(Debug, Clone, Default)]
struct SilentSince(Arc<Mutex<Option<Instant>>>);

impl<DB: Database> Pool<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    /// Creates a pool for a database that is always in the same place.
    pub fn new(connect: Connect<DB>, settings: Settings) -> Self {
        let (_, primary) = watch::channel(None);
        Self::with(Arc::new([connect]), primary, None, settings)
    }

    /// Creates a pool of connections to the primary of `servers`; `connects` has the way to each of
    /// them, in the order of the list. A server that takes no writes is refused before
    /// [`Settings::setup`].
    pub fn at(
        servers: &Servers,
        connects: impl IntoIterator<Item = Connect<DB>>,
        settings: Settings,
    ) -> Self {
        Self::with(
            connects.into_iter().collect(),
            servers.changes(),
            Some(ADMIT),
            settings,
        )
    }

    fn with(
        connects: Arc<[Connect<DB>]>,
        primary: watch::Receiver<Option<Primary>>,
        admit: Option<&'static str>,
        settings: Settings,
    ) -> Self {
        let unanswered = SilentSince::default();
        let options = options(admit, settings, &unanswered);
        let place = *primary.borrow();
        let pool = options.clone().connect_lazy_with(choose(&connects, place));
        let current = Arc::new(Mutex::new(Current {
            pool,
            primary: place,
        }));
        Self {
            current,
            options,
            connects,
            primary,
            settings,
            unanswered,
        }
    }

    /// For a call that begins now.
    pub fn current(&self) -> sqlx::Pool<DB> {
        let mut current = self.current.lock();
        let Settings { of, patience, .. } = self.settings;
        let primary = *self.primary.borrow();
        let is_of_no_use = patience
            .is_some_and(|patience| self.unanswered.for_longer_than(patience, Instant::now()));
        if current.pool.is_closed() {
            return current.pool.clone();
        }
        if current.primary != primary {
            // Waiting callers fail at once; connections in use end when they are returned.
            drop(current.pool.close());
        } else if is_of_no_use {
            tracing::warn!(
                "no connection of {of} answers any more: they are left, and new ones made"
            );
        } else {
            return current.pool.clone();
        }
        let pool = self
            .options
            .clone()
            .connect_lazy_with(choose(&self.connects, primary));
        *current = Current {
            pool: pool.clone(),
            primary,
        };
        pool
    }

    /// Ends the connections, once they are idle.
    pub async fn close(&self) {
        let current = self.current.lock().pool.clone();
        current.close().await;
    }
}

/// Returns how the primary is connected to.
fn choose<C: Clone>(connects: &[C], primary: Option<Primary>) -> C {
    connects[primary.map_or(0, |primary| primary.place)].clone()
}

fn options<DB: Database>(
    admit: Option<&'static str>,
    settings: Settings,
    unanswered: &SilentSince,
) -> PoolOptions<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    let [connected, acquired, released] = [(); 3].map(|()| unanswered.clone());
    let release_within = settings
        .patience
        .map_or(RELEASE_WITHIN, |patience| patience.min(RELEASE_WITHIN));
    PoolOptions::<DB>::new()
        .max_connections(settings.connections.max(1))
        .acquire_timeout(settings.acquire_within)
        // The driver asks one that comes back; one that cannot fall silent in the pool is not asked
        // again.
        .test_before_acquire(settings.patience.is_some())
        .after_connect(move |connection, _| {
            let connected = connected.clone();
            Box::pin(async move {
                for statement in admit.iter().chain(settings.setup) {
                    (&mut *connection).execute(*statement).await?;
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
                // Also waits for the end of a transaction that is being undone.
                timeout(release_within, connection.ping())
                    .await
                    .unwrap_or_else(|_| Err(silent()))?;
                released.ends();
                // The driver counts a transaction as open when its end failed, and the database may
                // have undone it by itself: no transaction could begin on this connection any more.
                Ok(!connection.is_in_transaction())
            })
        })
}

impl SilentSince {
    /// Notes a call at `now`. Returns whether no call was answered for that long, and restarts the
    /// count if so.
    fn for_longer_than(&self, patience: Duration, now: Instant) -> bool {
        let mut since = self.0.lock();
        let first = since.unwrap_or(now);
        let is_longer = now.saturating_duration_since(first) > patience;
        *since = Some(if is_longer { now } else { first });
        is_longer
    }

    fn ends(&self) {
        *self.0.lock() = None;
    }
}

impl<DB: Database> Clone for Pool<DB> {
    fn clone(&self) -> Self {
        Self {
            current: Arc::clone(&self.current),
            options: self.options.clone(),
            connects: Arc::clone(&self.connects),
            primary: self.primary.clone(),
            settings: self.settings,
            unanswered: self.unanswered.clone(),
        }
    }
}

/// How to connect may be a secret.
impl<DB: Database> fmt::Debug for Pool<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kanat_testing_postgres::{Database as TestDatabase, Line};
    use sqlx::Postgres;

    use super::*;

    #[test]
    fn nobody_was_answered_for_long_when_those_who_ask_are_not() {
        let unanswered = SilentSince::default();
        let begun = Instant::now();
        let asks = |seconds| {
            unanswered.for_longer_than(
                Duration::from_secs(30),
                begun + Duration::from_secs(seconds),
            )
        };
        assert!(!asks(0) && !asks(30));
        unanswered.ends();
        assert!(!asks(31), "somebody was");
        assert!(!asks(61) && asks(62));
        assert!(!asks(63) && !asks(92), "the new pool has its time too");
        assert!(asks(93));
    }

    async fn ping(pool: &Pool<Postgres>) -> Result<(), sqlx::Error> {
        pool.current().acquire().await?.ping().await
    }

    /// One place of two, and then the other.
    #[tokio::test]
    async fn a_pool_goes_on_with_the_places_that_it_has_and_is_left_when_it_has_none() {
        let database = TestDatabase::fresh();
        let line = Line::to(database.url());
        let connections = 2;
        let second = Duration::from_secs(1);
        let settings = Settings {
            of: "the test",
            connections,
            acquire_within: second,
            patience: Some(second),
            setup: &[],
        };
        let pool: Pool<Postgres> = Pool::new(line.url().parse().unwrap(), settings);
        let first = pool.current();
        for left in [1, 0] {
            line.drop_answers();
            let mut connection = first.acquire().await.unwrap();
            connection.begin().await.unwrap().commit().await.unwrap();
            drop(connection);
            while line.waits() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(ping(&pool).await.is_ok(), left > 0);
        }
        while ping(&pool).await.is_err() {}
        assert!(first.acquire().await.is_err(), "its places are lost");
        pool.close().await;
        assert!(matches!(ping(&pool).await, Err(sqlx::Error::PoolClosed)));
    }
}
