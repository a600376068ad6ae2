//! How the file is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions, SqlitePool};

use crate::Error;

/// Connections for reading; each has a thread, and half a megabyte.
pub(super) const READERS: u32 = 3;
/// Connections for lists that look into payloads: these may take long, and others must not wait for
/// them.
pub(super) const SEARCHERS: u32 = 1;
/// How long another process may hold the file, as a person with a shell does.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A read that finds no free connection for so long fails.
const READER_TIMEOUT: Duration = Duration::from_secs(10);
/// What is left of the write-ahead log's file after it has grown.
const WAL_LIMIT_BYTES: i64 = 64 * 1024 * 1024;
/// In KiB when negative.
const WRITER_CACHE: i64 = -2 * 1024;
const STATEMENTS: usize = 64;
/// As SQLite says that freed pages are given back when it is asked to.
const INCREMENTAL: i64 = 2;
/// Of a new file; one that is there keeps its own. Messages fill some pages whole, so that few
/// large ones are fewer calls of the system; larger ones yet are written more often for a little
/// that changes in them.
const PAGE_BYTES: i64 = 8 * 1024;

/// How the log is kept.
#[derive(Debug, Clone)]
pub struct Options {
    pub durability: Durability,
    /// Operations that may wait for the writer; appends beyond it are refused as full.
    pub queue: usize,
    /// Bytes of message bodies that may wait for the writer; appends beyond it are refused as full.
    pub queue_bytes: usize,
    /// For tests: the file may not grow beyond so many pages.
    #[doc(hidden)]
    pub max_pages: Option<u32>,
}

/// What an answer is worth when the machine loses power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What was acknowledged is on disk.
    Full,
    /// The last seconds of what was acknowledged may be lost with the power; a crash of the process
    /// loses nothing.
    RelaxedMayLoseAckedMessages,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            queue: 8_192,
            queue_bytes: 64 * 1024 * 1024,
            max_pages: None,
        }
    }
}

impl Options {
    pub(super) fn writing(&self, path: &Path) -> rusqlite::Result<Connection> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.set_prepared_statement_cache_capacity(STATEMENTS);
        conn.pragma_update(None, "page_size", PAGE_BYTES)?;
        // Takes effect only before the first table is made, and lets retention shrink the file. It
        // writes, also where it is so already, for which a full disk may have no room.
        if conn.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0))? != INCREMENTAL
        {
            conn.pragma_update(None, "auto_vacuum", "incremental")?;
        }
        conn.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match self.durability {
            Durability::Full => "full",
            Durability::RelaxedMayLoseAckedMessages => "normal",
        };
        conn.pragma_update(None, "synchronous", synchronous)?;
        conn.pragma_update(None, "foreign_keys", false)?;
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
        conn.pragma_update(None, "cache_size", WRITER_CACHE)?;
        conn.pragma_update(None, "temp_store", "memory")?;
        if let Some(pages) = self.max_pages {
            conn.pragma_update(None, "max_page_count", pages)?;
        }
        Ok(conn)
    }

    pub(super) async fn reading(&self, path: &Path, connections: u32) -> Result<SqlitePool, Error> {
        let pool = SqlitePoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(READER_TIMEOUT);
        // The driver asks one that comes back; a file does not go away in the pool.
        let pool = pool.test_before_acquire(false);
        Ok(pool.connect_with(base(path).read_only(true)).await?)
    }
}

fn base(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(STATEMENTS)
        .foreign_keys(false)
        .disable_statement_logging()
}
