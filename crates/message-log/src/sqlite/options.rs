//! Options of the log, and the settings of its connections.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions, SqlitePool};

use crate::Error;

/// Number of connections for reading. Each has a thread, and takes half a megabyte.
pub(super) const READERS: u32 = 3;
/// Number of connections for lists that search payloads. These may take long, and other readers do
/// not wait for them.
pub(super) const SEARCHERS: u32 = 1;
/// Time for which another process, such as a shell, may lock the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a read that finds no free connection fails.
const READER_TIMEOUT: Duration = Duration::from_secs(10);
/// Length to which the file of the write-ahead log is cut after it has grown.
const MAX_KEPT_WAL_BYTES: i64 = 64 * 1024 * 1024;
/// Page cache of a writing connection, as SQLite's `cache_size`: KiB when negative.
const WRITER_CACHE_SIZE: i64 = -2 * 1024;
/// Number of prepared statements that each connection caches.
const STATEMENT_CACHE_SIZE: usize = 64;
/// Value of SQLite's `auto_vacuum` by which free pages go back to the disk on request.
const INCREMENTAL_VACUUM: i64 = 2;
/// Page size of a new file; an existing one keeps its own. A message fills several pages, so that
/// larger pages take fewer system calls. Pages larger than this are rewritten too often for small
/// changes.
const PAGE_BYTES: i64 = 8 * 1024;

/// Options of a log.
#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Number of operations that may wait for the writer. Beyond it, an append is refused as full,
    /// and any other operation waits for a place.
    pub max_queued_operations: usize,
    /// Bytes of waiting operations beyond which an append is refused as full. They do not bound
    /// other operations.
    pub max_queued_bytes: usize,
    /// Number of pages beyond which the file may not grow; for tests.
    #[doc(hidden)]
    pub max_pages: Option<u32>,
    /// True if every operation goes straight to the tables; for tests.
    #[doc(hidden)]
    pub without_journal: bool,
}

/// Durability of acknowledged operations when the machine loses power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Everything that was acknowledged is on disk.
    Full,
    /// A loss of power may lose the acknowledged operations of the last seconds. A crash of the
    /// process loses none.
    RelaxedMayLoseAckedMessages,
}

/// Durability of one commit when the machine loses power. A crash of the process loses no commit.
/// `Statements::set_synchronous` sets it, and `CheckpointHandle::track_writes` finds commits that
/// wrote nothing, to which it does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitDurability {
    /// The commit is on disk before it returns.
    Synced,
    /// The commit is on disk after the next synced one, or after a checkpoint.
    Deferred,
}

impl CommitDurability {
    /// Returns the value of SQLite's `synchronous` for the commit.
    pub fn synchronous(self) -> &'static str {
        match self {
            Self::Synced => "full",
            Self::Deferred => "normal",
        }
    }
}

impl Durability {
    /// Returns the durability of a commit on which callers wait.
    pub(super) fn ack_durability(self) -> CommitDurability {
        match self {
            Self::Full => CommitDurability::Synced,
            Self::RelaxedMayLoseAckedMessages => CommitDurability::Deferred,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            max_queued_operations: 8_192,
            max_queued_bytes: 64 * 1024 * 1024,
            max_pages: None,
            without_journal: false,
        }
    }
}

impl Options {
    /// Opens a connection that writes.
    pub(super) fn open_writer(&self, path: &Path) -> rusqlite::Result<Connection> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        conn.pragma_update(None, "page_size", PAGE_BYTES)?;
        // Lets retention shrink the file, and takes effect only before the first table is created.
        // Setting it writes in any case, for which a full disk may have no room.
        if conn.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0))?
            != INCREMENTAL_VACUUM
        {
            conn.pragma_update(None, "auto_vacuum", "incremental")?;
        }
        conn.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = self.durability.ack_durability().synchronous();
        conn.pragma_update(None, "synchronous", synchronous)?;
        conn.pragma_update(None, "foreign_keys", false)?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "journal_size_limit", MAX_KEPT_WAL_BYTES)?;
        conn.pragma_update(None, "cache_size", WRITER_CACHE_SIZE)?;
        conn.pragma_update(None, "temp_store", "memory")?;
        if let Some(pages) = self.max_pages {
            conn.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(conn)
    }

    /// Opens a pool of `connections` that only read.
    pub(super) async fn open_read_pool(
        &self,
        path: &Path,
        connections: u32,
    ) -> Result<SqlitePool, Error> {
        let pool = SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(READER_TIMEOUT);
        // A test would be a query for each use, and a connection to a file does not break in the
        // pool.
        let pool = pool.test_before_acquire(false);
        Ok(pool.connect_with(base(path).read_only(true)).await?)
    }
}

fn base(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENT_CACHE_SIZE)
        .foreign_keys(false)
        .disable_statement_logging()
}
