//! What keeps the file small, outside of any transaction.

use rusqlite::{Connection, ffi};

use super::operation::Effect;
use super::syncs::Syncs;

/// Gives so many free pages back to the disk.
pub(super) fn shrink(conn: &Connection, pages: u32) -> rusqlite::Result<Effect> {
    // A page is given back at every step of the statement.
    let mut shrink = conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut steps = shrink.query(())?;
    while steps.next()?.is_some() {}
    Ok(Effect::Done)
}

/// Moves what the write-ahead log holds into the main file, and empties it. Readers may keep it
/// from doing so for now.
pub(super) fn truncate(conn: &Connection) -> rusqlite::Result<Effect> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(Effect::Done))
}

/// Has everything in the main file, on disk, and nothing in the write-ahead log. Errors when it
/// cannot, also when another program reads.
pub(super) fn move_whole(conn: &Connection) -> rusqlite::Result<()> {
    let busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    if busy {
        let reason = "its write-ahead log is being read".to_owned();
        return Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            Some(reason),
        ));
    }
    Ok(())
}

/// Leaves one file behind, and closes it.
pub(super) fn finish(conn: Connection, syncs: &Syncs) {
    let truncated = truncate(&conn).map(|_| ());
    conn.flush_prepared_statement_cache();
    let closed = conn.close().map_err(|(_, error)| error);
    if let Err(error) = truncated.and(closed) {
        syncs.note(&error);
        tracing::warn!(
            error = %error,
            "the message log was not closed cleanly; nothing is lost by it",
        );
    }
}
