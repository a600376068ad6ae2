//! Moves the write-ahead log into the main file while the writer goes on. What came in meanwhile, a
//! little, the writer moves itself: only a log that is moved whole begins again from its start, and
//! so stays small.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::maintenance;
use super::operation::Effect;
use super::options::Options;
use super::syncs::Syncs;

/// In the write-ahead log before they are moved, so that a page that many commits touch is moved
/// once.
const PAGES_BYTES: i32 = 16 * 1024 * 1024;
/// So many times as much, and the writer waits until all is moved: the disk does not keep up.
const MOST: i32 = 4;

thread_local! {
    /// The length of the write-ahead log after the last commit of the thread that writes.
    static LENGTH_PAGES: Cell<i32> = const { Cell::new(0) };
    /// A commit of that thread has written something.
    static WROTE: Cell<bool> = const { Cell::new(false) };
}

/// The writer's side.
pub(super) struct Checkpoints {
    wanted: SyncSender<()>,
    moved: Arc<AtomicBool>,
    moving: Arc<Moving>,
    syncs: Syncs,
    /// In the write-ahead log before they are moved.
    pages: i32,
    page_bytes: u64,
    /// So many syncs had failed when the write-ahead log last began again for it.
    mended: Cell<u64>,
}

/// The other side, which has a thread and a connection of its own.
pub(super) struct Mover {
    conn: Connection,
    wanted: Receiver<()>,
    moved: Arc<AtomicBool>,
    moving: Arc<Moving>,
    syncs: Syncs,
}

/// Held by who moves pages: SQLite refuses another one at once, however long it may wait for other
/// locks.
#[derive(Default)]
struct Moving(Mutex<()>);

/// Replaces SQLite's own way, which stops the writer for all of a checkpoint.
pub(super) fn start(
    writer: &Connection,
    path: &Path,
    options: &Options,
    syncs: Syncs,
) -> rusqlite::Result<(Checkpoints, Mover)> {
    writer.wal_hook(Some(|_, pages| {
        LENGTH_PAGES.set(pages);
        WROTE.set(true);
        Ok(())
    }));
    let conn = options.writing(path)?;
    let page_bytes: i32 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = PAGES_BYTES / page_bytes;
    let (sender, wanted) = sync_channel(1);
    let moved = Arc::new(AtomicBool::new(false));
    let moving = Arc::new(Moving::default());
    let mover = Mover {
        conn,
        wanted,
        moved: Arc::clone(&moved),
        moving: Arc::clone(&moving),
        syncs: syncs.clone(),
    };
    let page_bytes = u64::try_from(page_bytes).unwrap_or_default();
    Ok((
        Checkpoints {
            wanted: sender,
            moved,
            moving,
            pages,
            page_bytes,
            syncs,
            mended: Cell::default(),
        },
        mover,
    ))
}

impl Checkpoints {
    pub fn syncs(&self) -> &Syncs {
        &self.syncs
    }

    /// Before a transaction. Where a sync failed, a part of the write-ahead log may not be on disk,
    /// and what stands behind that part is not read after a loss of power: nothing is written there
    /// until the log has been moved whole and begins again.
    pub fn mend(&self, writer: &Connection) -> rusqlite::Result<()> {
        let failed = self.syncs.failed();
        if self.mended.get() == failed {
            return Ok(());
        }
        let _alone = self.moving.begin();
        maintenance::move_whole(writer).inspect_err(|error| self.syncs.note(error))?;
        self.mended.set(failed);
        tracing::warn!(
            "the message log goes on after a failed sync: its write-ahead log has been moved whole"
        );
        Ok(())
    }

    /// Moves all that the write-ahead log holds, and empties it. Readers may keep it from doing so
    /// for now.
    pub fn truncate(&self, writer: &Connection) -> rusqlite::Result<Effect> {
        let _alone = self.moving.begin();
        maintenance::truncate(writer)
    }

    /// Whether `commit` wrote anything: SQLite syncs nothing for a transaction that changed no
    /// page, whatever it is told.
    pub fn saw<T>(&self, commit: impl FnOnce() -> T) -> (T, bool) {
        WROTE.set(false);
        (commit(), WROTE.get())
    }

    /// Returns the length of the write-ahead log after the last commit, on the thread that writes.
    pub fn length_bytes(&self) -> u64 {
        u64::try_from(LENGTH_PAGES.get())
            .unwrap_or_default()
            .saturating_mul(self.page_bytes)
    }

    /// After a commit, on the thread that writes.
    pub fn committed(&self, writer: &Connection) {
        let length = LENGTH_PAGES.get();
        if length < self.pages {
            // It has begun again: what was moved before that counts no more.
            self.moved.store(false, Ordering::Release);
            return;
        }
        if self.moved.swap(false, Ordering::AcqRel) || length >= self.pages.saturating_mul(MOST) {
            pass(writer, &self.syncs);
        } else {
            // Fails while one is under way.
            let _ = self.wanted.try_send(());
        }
    }
}

impl Moving {
    fn begin(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mover {
    /// Moves when asked to, until the writer is gone.
    pub fn run(self) {
        while self.wanted.recv().is_ok() {
            let alone = self.moving.begin();
            pass(&self.conn, &self.syncs);
            drop(alone);
            self.moved.store(true, Ordering::Release);
            // What was asked for meanwhile is done.
            let _ = self.wanted.try_recv();
        }
    }
}

/// Moves what no reader needs where it is; waits for nobody.
fn pass(conn: &Connection, syncs: &Syncs) {
    if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
        syncs.note(&error);
        tracing::warn!(
            %error,
            "the message log's write-ahead log could not be moved into its file",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_log_that_a_sync_failed_begins_again_once_nobody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let syncs = Syncs::default();
        let writer = Options::default().writing(&path).unwrap();
        writer.busy_timeout(Duration::ZERO).unwrap();
        let (checkpoints, _mover) =
            start(&writer, &path, &Options::default(), syncs.clone()).unwrap();
        writer
            .execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1)")
            .unwrap();
        let length = || {
            std::fs::metadata(path.with_extension("db-wal"))
                .unwrap()
                .len()
        };
        checkpoints.mend(&writer).unwrap();
        assert!(length() > 0, "all syncs went well");

        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM a").unwrap();
        syncs.note(&rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_IOERR_FSYNC),
            None,
        ));
        checkpoints.mend(&writer).unwrap_err();
        checkpoints.mend(&writer).unwrap_err();
        reader.execute_batch("COMMIT").unwrap();
        checkpoints.mend(&writer).unwrap();
        assert_eq!(length(), 0);
        writer.execute_batch("INSERT INTO a VALUES (2)").unwrap();
        checkpoints.mend(&writer).unwrap();
        assert!(length() > 0, "once for each failure");
    }

    #[test]
    fn counts_in_the_pages_that_the_file_has() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("new.db", 8_192), ("former.db", 4_096)] {
            let path = folder.path().join(name);
            if name == "former.db" {
                let former = Connection::open(&path).unwrap();
                former.pragma_update(None, "page_size", bytes).unwrap();
                former.execute_batch("CREATE TABLE a (b)").unwrap();
            }
            let writer = Options::default().writing(&path).unwrap();
            writer.execute_batch("CREATE TABLE c (d)").unwrap();
            let (checkpoints, _mover) =
                start(&writer, &path, &Options::default(), Syncs::default()).unwrap();
            let kept: i32 = writer
                .pragma_query_value(None, "page_size", |row| row.get(0))
                .unwrap();
            assert_eq!(kept, bytes, "{name}");
            assert_eq!(checkpoints.pages * kept, PAGES_BYTES, "{name}");
        }
    }
}
