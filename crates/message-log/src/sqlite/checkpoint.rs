//! Moves the write-ahead log into the main file while the writer goes on. What came in meanwhile, a little, the writer moves
//! itself: only a log that is moved whole begins again from its start, and so stays small.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

use super::options::Options;

/// Pages in the write-ahead log before they are moved: 16 MiB, so that a page that many commits touch is moved once.
const PAGES: i32 = 4_000;
/// So many, and the writer waits until all are moved: the disk does not keep up.
const MOST_PAGES: i32 = 4 * PAGES;

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
}

/// The other side, which has a thread and a connection of its own.
pub(super) struct Mover {
    conn: Connection,
    wanted: Receiver<()>,
    moved: Arc<AtomicBool>,
}

/// Replaces SQLite's own way, which stops the writer for all of a checkpoint.
pub(super) fn start(writer: &Connection, path: &Path, options: &Options) -> rusqlite::Result<(Checkpoints, Mover)> {
    writer.wal_hook(Some(|_, pages| {
        LENGTH_PAGES.set(pages);
        WROTE.set(true);
        Ok(())
    }));
    let conn = options.writing(path)?;
    let (sender, wanted) = sync_channel(1);
    let moved = Arc::new(AtomicBool::new(false));
    Ok((Checkpoints { wanted: sender, moved: Arc::clone(&moved) }, Mover { conn, wanted, moved }))
}

impl Checkpoints {
    /// Whether `commit` wrote anything: SQLite syncs nothing for a transaction that changed no page, whatever it is told.
    pub fn saw<T>(&self, commit: impl FnOnce() -> T) -> (T, bool) {
        WROTE.set(false);
        (commit(), WROTE.get())
    }

    /// After a commit, on the thread that writes.
    pub fn committed(&self, writer: &Connection) {
        let length = LENGTH_PAGES.get();
        if length < PAGES {
            // It has begun again: what was moved before that counts no more.
            self.moved.store(false, Ordering::Release);
            return;
        }
        if self.moved.swap(false, Ordering::AcqRel) || length >= MOST_PAGES {
            pass(writer);
        } else {
            // Fails while one is under way.
            let _ = self.wanted.try_send(());
        }
    }
}

impl Mover {
    /// Moves when asked to, until the writer is gone.
    pub fn run(self) {
        while self.wanted.recv().is_ok() {
            pass(&self.conn);
            self.moved.store(true, Ordering::Release);
            // What was asked for meanwhile is done.
            let _ = self.wanted.try_recv();
        }
    }
}

/// Moves what no reader needs where it is; waits for nobody.
fn pass(conn: &Connection) {
    if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
        tracing::warn!(%error, "the message log's write-ahead log could not be moved into its file");
    }
}
