//! The handle to the database.

use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Once};
use std::time::Duration;

use kanat_database::{Addresses, Patience, Pool, Servers, pool};
use sqlx::Any;
use sqlx::any::AnyConnectOptions;
use tokio::sync::{Semaphore, watch};

use crate::dialect::Dialect;
use crate::transaction::Turn;
use crate::{Changes, Error, Listener, Result, Tx, migration};

/// A call that finds no free connection for so long fails.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(10);

/// A cheap handle to the configuration store.
#[derive(Clone)]
pub struct Store {
    pool: Pool<Any>,
    dialect: Dialect,
    /// Servers of a PostgreSQL database.
    servers: Option<Servers>,
    patience: Duration,
    /// SQLite has one writer; queueing here is fair, its own lock is not.
    writers: Option<Writers>,
}

/// Writers of this process, where the database has no others.
#[derive(Clone)]
struct Writers {
    turns: Arc<Semaphore>,
    written: watch::Sender<()>,
}

/// How the store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Most connections at once, without that of a [`Listener`].
    pub connections: u32,
    /// Longest that the database may take to answer a statement. Its connection is given up then,
    /// and all of them when nobody got one for so long.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 8,
            patience: Duration::from_secs(30),
        }
    }
}

impl Store {
    /// Opens `sqlite:<path>` (made when missing), `postgres://...`, or that one of several such
    /// addresses, with commas between, that takes writes. Brings the schema up to date. Errors when
    /// the schema is newer than this build.
    pub async fn open(address: &str) -> Result<Self> {
        Self::open_with(address, &Options::default()).await
    }

    /// Opens the same as [`Store::open`], with bounds of the caller's.
    pub async fn open_with(address: &str, options: &Options) -> Result<Self> {
        let store = Self::connect(address, options).await?;
        let mut tx = store.begin().await?;
        migration::run(&mut tx, store.dialect).await?;
        tx.commit().await?;
        Ok(store)
    }

    /// Opens the same and leaves its schema as it is: for a look at a database that is another
    /// process's.
    pub async fn attach(address: &str) -> Result<Self> {
        Self::connect(address, &Options::default()).await
    }

    async fn connect(address: &str, options: &Options) -> Result<Self> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);

        if Addresses::is_one(address) {
            return Self::connect_to(&Addresses::parse(address)?, options).await;
        }
        let dialect = Dialect::Sqlite;
        let way = AnyConnectOptions::from_str(&locate(address)?)?;
        let pool = Pool::new(way, settings(dialect, options));
        // Whether there is a database.
        pool.current().acquire().await?;
        let writers = Some(Writers {
            turns: Arc::new(Semaphore::new(1)),
            written: watch::Sender::new(()),
        });
        Ok(Self {
            pool,
            dialect,
            servers: None,
            patience: options.patience,
            writers,
        })
    }

    async fn connect_to(addresses: &Addresses, options: &Options) -> Result<Self> {
        let dialect = Dialect::Postgres;
        let servers = Servers::new(addresses, |server| server);
        // Whether there is a database, and where.
        servers.connect(options.patience).await?;
        let ways = addresses
            .urls()
            .map(AnyConnectOptions::from_str)
            .collect::<Result<Vec<_>, _>>()?;
        let pool = Pool::at(&servers, ways, settings(dialect, options));
        Ok(Self {
            pool,
            dialect,
            servers: Some(servers),
            patience: options.patience,
            writers: None,
        })
    }

    /// Opens the SQLite file at `path`, which is made when it is missing.
    pub async fn open_file(path: &Path) -> Result<Self> {
        Self::open(&format!("sqlite:{}", path.display())).await
    }

    /// Returns whether one process at a time has the database, as with a file.
    pub fn is_of_one_process(&self) -> bool {
        self.dialect == Dialect::Sqlite
    }

    /// Begins a transaction that may write.
    pub async fn begin(&self) -> Result<Tx> {
        let turn = match &self.writers {
            Some(Writers { turns, written }) => {
                let turn = Arc::clone(turns)
                    .acquire_owned()
                    .await
                    .expect("the semaphore is never closed");
                Some(Turn::new(turn, written.clone()))
            }
            None => None,
        };
        self.begin_by(self.dialect.begin_write(), turn).await
    }

    /// Begins a transaction that sees one state of the database throughout; only for reading.
    pub async fn read(&self) -> Result<Tx> {
        self.begin_by(self.dialect.begin_read(), None).await
    }

    async fn begin_by(&self, statement: &'static str, turn: Option<Turn>) -> Result<Tx> {
        let patience = match &self.servers {
            Some(servers) => servers.patience(self.patience),
            None => Patience::in_place(self.patience),
        };
        let pool = self.pool.current();
        let connection = patience.acquired(pool.acquire()).await?;
        Tx::begin(connection, statement, turn, patience).await
    }

    /// Returns whether other processes may work on the same database.
    pub fn is_shared(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// When to look again for what was changed; from now on.
    pub fn changes(&self) -> Changes {
        Changes::new(self.writers.as_ref().map(|writers| &writers.written))
    }

    /// Hears what other processes announce; `None` where there are none.
    pub async fn listen(&self) -> Result<Option<Listener>> {
        let Some(servers) = &self.servers else {
            return Ok(None);
        };
        Ok(Some(Listener::open(servers).await?))
    }

    /// Errors when the database does not answer.
    pub async fn ping(&self) -> Result<()> {
        self.read().await?.commit().await
    }

    /// Closes the connections once they are idle.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

fn settings(dialect: Dialect, options: &Options) -> pool::Settings {
    pool::Settings {
        of: "the configuration store",
        connections: options.connections,
        acquire_within: ACQUIRE_WITHIN.min(3 * options.patience),
        // SQLite is in the process, and falls silent with it.
        patience: (dialect == Dialect::Postgres).then_some(options.patience),
        setup: dialect.connection_setup(),
    }
}

/// Returns the driver's address of a file.
fn locate(address: &str) -> Result<String> {
    let path = address
        .strip_prefix("sqlite:")
        .ok_or_else(|| Error::Address(hide_password(address)))?;
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err(Error::Address(address.to_owned()));
    }
    let path = std::path::absolute(path).map_err(|_| Error::Address(address.to_owned()))?;
    Ok(format!(
        "sqlite://{}?mode=rwc",
        percent_encode(&path.to_string_lossy())
    ))
}

/// An address that is wrong may still carry a password.
fn hide_password(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://..."),
        None => "...".to_owned(),
    }
}

fn percent_encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use kanat_testing_postgres::{Database, Line};
    use tokio::time::timeout;

    use super::*;
    use crate::meta;

    #[tokio::test]
    async fn opens_a_file_whose_name_needs_escaping_and_finds_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b%?#ü.db");
        let store = Store::open_file(&path).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        let epoch = meta::epoch(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
        store.close().await;
        assert!(path.exists());
        let again = Store::open_file(&path).await.unwrap();
        assert_eq!(
            meta::epoch(&mut again.read().await.unwrap()).await.unwrap(),
            epoch
        );
    }

    #[tokio::test]
    async fn what_is_not_committed_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        let mut tx = store.begin().await.unwrap();
        meta::set(&mut tx, "colour", "red").await.unwrap();
        drop(tx);
        assert_eq!(
            meta::get(&mut store.read().await.unwrap(), "colour")
                .await
                .unwrap(),
            None
        );
    }

    #[tokio::test]
    async fn writes_wake_pollers_and_reads_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        let mut written = store.writers.as_ref().unwrap().written.subscribe();
        store.read().await.unwrap().commit().await.unwrap();
        drop(store.begin().await.unwrap());
        assert!(!written.has_changed().unwrap());
        let mut tx = store.begin().await.unwrap();
        meta::set(&mut tx, "colour", "red").await.unwrap();
        tx.commit().await.unwrap();
        assert!(written.has_changed().unwrap());

        // One whose caller does not wait to the end.
        written.mark_unchanged();
        let mut tx = store.begin().await.unwrap();
        meta::set(&mut tx, "colour", "blue").await.unwrap();
        let mut commit = Box::pin(tx.commit());
        assert!(futures::poll!(commit.as_mut()).is_pending());
        drop(commit);
        timeout(Duration::from_secs(30), written.changed())
            .await
            .expect("it is told")
            .unwrap();
        assert_eq!(
            meta::get(&mut store.read().await.unwrap(), "colour")
                .await
                .unwrap(),
            Some("blue".to_owned())
        );
    }

    /// One connection, so that whoever keeps it for nothing is seen.
    #[tokio::test]
    async fn a_connection_that_falls_silent_is_given_up() {
        let database = Database::fresh();
        let line = Line::to(database.url());
        let options = Options {
            connections: 1,
            patience: Duration::from_secs(1),
        };
        let store = Store::open_with(line.url(), &options).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        line.fall_silent_at("blue");
        let error = meta::set(&mut tx, "colour", "blue").await.unwrap_err();
        assert!(
            error.may_pass() && error.to_string().contains("does not answer"),
            "{error}"
        );
        drop(tx);
        let mut tx = store.begin().await.expect("its place is free again");
        meta::set(&mut tx, "colour", "red").await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            meta::get(&mut store.read().await.unwrap(), "colour")
                .await
                .unwrap(),
            Some("red".to_owned())
        );
        store.close().await;
    }

    /// One connection, so that all places are lost.
    #[tokio::test]
    async fn connections_that_fell_silent_on_return_are_replaced() {
        let database = Database::fresh();
        let line = Line::to(database.url());
        let options = Options {
            connections: 1,
            patience: Duration::from_secs(1),
        };
        let store = Store::open_with(line.url(), &options).await.unwrap();
        let mut tx = store.begin().await.unwrap();
        meta::set(&mut tx, "colour", "red").await.unwrap();
        line.drop_answers();
        tx.commit().await.unwrap();
        let read = async {
            while line.waits() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            loop {
                match store.read().await {
                    Ok(tx) => break tx,
                    Err(error) => assert!(error.may_pass(), "{error}"),
                }
            }
        };
        let mut tx = timeout(Duration::from_secs(60), read)
            .await
            .expect("its place is lost for good");
        assert_eq!(
            meta::get(&mut tx, "colour").await.unwrap(),
            Some("red".to_owned())
        );
        tx.commit().await.unwrap();
        timeout(Duration::from_secs(60), store.close())
            .await
            .expect("nothing holds it up");
    }

    #[tokio::test]
    async fn refuses_an_address_of_another_kind_without_repeating_its_password() {
        let error = Store::open("mysql://root:hunter2@localhost/x")
            .await
            .err()
            .unwrap();
        assert!(matches!(error, Error::Address(_)));
        assert!(!error.to_string().contains("hunter2"));
    }
}
