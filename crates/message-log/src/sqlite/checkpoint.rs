//! Checkpoints: a thread copies the write-ahead log into the main file while the writer goes on.
//! The writer itself then checkpoints the few pages that were added meanwhile, because only a log
//! that is checkpointed fully restarts from its beginning, and so stays small.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::maintenance;
use super::operation::Effect;
use super::options::Options;
use super::sync_failures::SyncFailures;

/// Length of the write-ahead log at which it is checkpointed. It is large, so that a page that
/// many commits change is copied once.
const CHECKPOINT_BYTES: i32 = 16 * 1024 * 1024;
/// Multiple of [`CHECKPOINT_BYTES`] at which the writer itself checkpoints the log, because the
/// checkpointer does not keep up.
const MAX_LENGTH_FACTOR: i32 = 4;

thread_local! {
    /// Pages of the write-ahead log after the last commit of the writer's thread.
    static LENGTH_PAGES: Cell<i32> = const { Cell::new(0) };
    /// True once a commit of the writer's thread has changed a page.
    static WROTE: Cell<bool> = const { Cell::new(false) };
}

/// The writer's side.
pub(super) struct CheckpointHandle {
    requests: SyncSender<()>,
    shared: Arc<SharedState>,
    failures: SyncFailures,
    /// Pages of the write-ahead log at which it is checkpointed.
    threshold_pages: i32,
    page_bytes: u64,
    /// Number of failed syncs at the last full checkpoint. If more have failed since, the next
    /// transaction begins with another one.
    failures_at_checkpoint: Cell<u64>,
}

/// Thread that checkpoints the write-ahead log, with a connection of its own.
pub(super) struct Checkpointer {
    conn: Connection,
    requests: Receiver<()>,
    shared: Arc<SharedState>,
    failures: SyncFailures,
}

#[derive(Default)]
struct SharedState {
    /// True once the checkpointer has completed a pass on request. The writer then checkpoints the
    /// pages that were added meanwhile, and resets this.
    background_pass_done: AtomicBool,
    /// Held by the checkpointer and by truncations of the log: SQLite refuses a second checkpoint
    /// at once, whatever the timeout for locks is. The writer's passive checkpoint does not take
    /// it, and has no effect during another one.
    checkpoint_lock: Mutex<()>,
}

/// Replaces SQLite's automatic checkpoints, which stop the writer for their whole duration.
pub(super) fn start(
    writer: &Connection,
    path: &Path,
    options: &Options,
    failures: SyncFailures,
) -> rusqlite::Result<(CheckpointHandle, Checkpointer)> {
    writer.wal_hook(Some(|_, pages| {
        LENGTH_PAGES.set(pages);
        WROTE.set(true);
        Ok(())
    }));
    let conn = options.open_writer(path)?;
    let page_bytes: i32 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let (sender, receiver) = sync_channel(1);
    let shared = Arc::new(SharedState::default());
    let checkpointer = Checkpointer {
        conn,
        requests: receiver,
        shared: Arc::clone(&shared),
        failures: failures.clone(),
    };
    let handle = CheckpointHandle {
        requests: sender,
        shared,
        failures,
        threshold_pages: CHECKPOINT_BYTES / page_bytes,
        page_bytes: u64::try_from(page_bytes).unwrap_or_default(),
        failures_at_checkpoint: Cell::default(),
    };
    Ok((handle, checkpointer))
}

impl CheckpointHandle {
    pub fn sync_failures(&self) -> &SyncFailures {
        &self.failures
    }

    /// Checkpoints the write-ahead log fully, before a transaction, if a sync has failed. The log
    /// may have a gap on disk then, at which recovery after a loss of power stops. So nothing is
    /// appended to the log until it restarts.
    pub fn recover_after_failed_sync(&self, writer: &Connection) -> rusqlite::Result<()> {
        let failures = self.failures.count();
        if self.failures_at_checkpoint.get() == failures {
            return Ok(());
        }
        let _lock = self.shared.checkpoint_lock.lock();
        maintenance::checkpoint_fully(writer)
            .inspect_err(|error| self.failures.record_if_fsync_error(error))?;
        self.failures_at_checkpoint.set(failures);
        tracing::warn!(
            "the message log goes on after a failed sync: its write-ahead log is checkpointed fully"
        );
        Ok(())
    }

    /// Checkpoints the write-ahead log and empties its file, as far as readers let it. Does not
    /// wait for readers, because all callers of the writer would wait too.
    pub fn truncate_wal(&self, writer: &Connection) -> rusqlite::Result<Effect> {
        let _lock = self.shared.checkpoint_lock.lock();
        let timeout_ms: u32 = writer.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
        writer.busy_timeout(Duration::ZERO)?;
        let truncated = maintenance::truncate_wal(writer);
        writer.busy_timeout(Duration::from_millis(timeout_ms.into()))?;
        truncated
    }

    /// Runs `commit` and returns whether it changed a page. SQLite syncs nothing for a transaction
    /// that changed none.
    pub fn track_writes<T>(&self, commit: impl FnOnce() -> T) -> (T, bool) {
        WROTE.set(false);
        (commit(), WROTE.get())
    }

    /// Returns the length of the write-ahead log after the last commit of this thread.
    pub fn length_bytes(&self) -> u64 {
        u64::try_from(LENGTH_PAGES.get())
            .unwrap_or_default()
            .saturating_mul(self.page_bytes)
    }

    /// Requests a checkpoint if the last commit of this thread made the write-ahead log long.
    /// Checkpoints on this thread instead if the checkpointer has just completed a checkpoint, or
    /// if the log is [`MAX_LENGTH_FACTOR`] times too long.
    pub fn after_commit(&self, writer: &Connection) {
        let length = LENGTH_PAGES.get();
        let background_pass_done = &self.shared.background_pass_done;
        if length < self.threshold_pages {
            // The log has restarted, so that an earlier checkpoint does not count.
            background_pass_done.store(false, Ordering::Release);
            return;
        }
        let max_pages = self.threshold_pages.saturating_mul(MAX_LENGTH_FACTOR);
        if background_pass_done.swap(false, Ordering::AcqRel) || length >= max_pages {
            checkpoint(writer, &self.failures);
        } else {
            // A full channel has a request already.
            let _ = self.requests.try_send(());
        }
    }
}

impl Checkpointer {
    /// Checkpoints the log on each request, until the writer is gone.
    pub fn run(self) {
        while self.requests.recv().is_ok() {
            let lock = self.shared.checkpoint_lock.lock();
            checkpoint(&self.conn, &self.failures);
            drop(lock);
            self.shared
                .background_pass_done
                .store(true, Ordering::Release);
            // This checkpoint answers a request that came meanwhile.
            let _ = self.requests.try_recv();
        }
    }
}

/// Copies the pages that no reader needs in the log, without waiting for readers.
fn checkpoint(conn: &Connection, failures: &SyncFailures) {
    if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(())) {
        failures.record_if_fsync_error(&error);
        tracing::warn!(
            %error,
            "the message log's write-ahead log could not be checkpointed",
        );
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_failed_sync_restarts_the_write_ahead_log_once_no_reader_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let failures = SyncFailures::default();
        let writer = Options::default().open_writer(&path).unwrap();
        writer.busy_timeout(Duration::ZERO).unwrap();
        let (handle, _checkpointer) =
            start(&writer, &path, &Options::default(), failures.clone()).unwrap();
        writer
            .execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1)")
            .unwrap();
        let length = || {
            std::fs::metadata(path.with_extension("db-wal"))
                .unwrap()
                .len()
        };
        handle.recover_after_failed_sync(&writer).unwrap();
        assert!(length() > 0, "no sync failed");

        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM a").unwrap();
        failures.record_if_fsync_error(&rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_IOERR_FSYNC),
            None,
        ));
        handle.recover_after_failed_sync(&writer).unwrap_err();
        handle.recover_after_failed_sync(&writer).unwrap_err();
        reader.execute_batch("COMMIT").unwrap();
        handle.recover_after_failed_sync(&writer).unwrap();
        assert_eq!(length(), 0);
        writer.execute_batch("INSERT INTO a VALUES (2)").unwrap();
        handle.recover_after_failed_sync(&writer).unwrap();
        assert!(length() > 0, "once for each failure");
    }

    thread_local! {
        static BUSY_CALLS: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn a_truncation_does_not_wait_for_a_reader_of_an_older_frame() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let writer = Options::default().open_writer(&path).unwrap();
        let (handle, _checkpointer) =
            start(&writer, &path, &Options::default(), SyncFailures::default()).unwrap();
        writer
            .execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1)")
            .unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM a").unwrap();
        writer.execute_batch("INSERT INTO a VALUES (2)").unwrap();
        // SQLite calls the handler where it would sleep for the busy timeout.
        let count = |_| {
            BUSY_CALLS.set(BUSY_CALLS.get() + 1);
            false
        };
        writer.busy_handler(Some(count)).unwrap();
        handle.truncate_wal(&writer).unwrap();
        assert_eq!(BUSY_CALLS.get(), 0);
        reader.execute_batch("COMMIT").unwrap();
    }

    #[test]
    fn a_truncation_keeps_the_busy_timeout_of_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let writer = Options::default().open_writer(&path).unwrap();
        let (handle, _checkpointer) =
            start(&writer, &path, &Options::default(), SyncFailures::default()).unwrap();
        writer.busy_timeout(Duration::from_secs(5)).unwrap();
        handle.truncate_wal(&writer).unwrap();
        let timeout_ms: i64 = writer
            .pragma_query_value(None, "busy_timeout", |row| row.get(0))
            .unwrap();
        assert_eq!(timeout_ms, 5_000);
    }

    #[test]
    fn counts_in_pages_of_the_size_that_the_file_has() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("new.db", 8_192), ("former.db", 4_096)] {
            let path = folder.path().join(name);
            if name == "former.db" {
                let former = Connection::open(&path).unwrap();
                former.pragma_update(None, "page_size", bytes).unwrap();
                former.execute_batch("CREATE TABLE a (b)").unwrap();
            }
            let writer = Options::default().open_writer(&path).unwrap();
            writer.execute_batch("CREATE TABLE c (d)").unwrap();
            let (handle, _checkpointer) =
                start(&writer, &path, &Options::default(), SyncFailures::default()).unwrap();
            let kept: i32 = writer
                .pragma_query_value(None, "page_size", |row| row.get(0))
                .unwrap();
            assert_eq!(kept, bytes, "{name}");
            assert_eq!(handle.threshold_pages * kept, CHECKPOINT_BYTES, "{name}");
        }
    }
}
