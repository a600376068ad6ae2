//! Maintenance of the file outside transactions: its size, its write-ahead log, and its close.

use rusqlite::{Connection, ffi};

use super::operation::Effect;
use super::sync_failures::SyncFailures;

/// Returns up to `pages` free pages to the file system.
pub(super) fn incremental_vacuum(conn: &Connection, pages: u32) -> rusqlite::Result<Effect> {
    // Each step of the statement returns one page.
    let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut steps = vacuum.query(())?;
    while steps.next()?.is_some() {}
    Ok(Effect::Done)
}

/// Checkpoints the write-ahead log and empties its file, as far as readers let it.
pub(super) fn truncate_wal(conn: &Connection) -> rusqlite::Result<Effect> {
    checkpoint_and_truncate_wal(conn).map(|_| Effect::Done)
}

/// Checkpoints the write-ahead log and empties its file. Returns whether a reader prevented a part
/// of it.
fn checkpoint_and_truncate_wal(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))
}

/// Checkpoints the whole write-ahead log with a sync of the main file, so that the log restarts.
///
/// # Errors
/// A part of the log cannot be checkpointed, also because another program reads it.
pub(super) fn checkpoint_fully(conn: &Connection) -> rusqlite::Result<()> {
    if checkpoint_and_truncate_wal(conn)? {
        let reason = "its write-ahead log is being read".to_owned();
        return Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            Some(reason),
        ));
    }
    Ok(())
}

/// Truncates the write-ahead log, and closes the connection.
pub(super) fn finish(conn: Connection, failures: &SyncFailures) {
    let truncated = truncate_wal(&conn).map(|_| ());
    conn.flush_prepared_statement_cache();
    let closed = conn.close().map_err(|(_, error)| error);
    if let Err(error) = truncated.and(closed) {
        failures.record_if_fsync_error(&error);
        tracing::warn!(
            error = %error,
            "the message log was not closed cleanly; nothing is lost by it",
        );
    }
}
