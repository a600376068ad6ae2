//! Lists that search payloads, which may read all messages of a flow. They run one at a time, on a
//! connection of their own, for a bounded time, and no longer than their caller waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kanat_model::Code;
use sqlx::{Connection, Sqlite, SqlitePool};

use crate::list::flow;
use crate::{Error, Filter, MessagePage, Position, Result};

/// Longest duration of a search.
const MAX_DURATION: Duration = Duration::from_secs(20);

/// Instructions of SQLite's virtual machine between two checks of the clock.
const CHECK_INTERVAL: i32 = 10_000;

/// Guard that ends a search when it is dropped.
struct SearchGuard(Arc<AtomicBool>);

impl Drop for SearchGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lists the messages of a flow that contain a text.
///
/// # Errors
/// `DEADLINE_EXCEEDED` when it takes longer than 20 s, and any that a read has.
pub(super) async fn list(
    searcher: &SqlitePool,
    filter: &Filter,
    position: Position,
) -> Result<MessagePage> {
    search(searcher, filter, position, MAX_DURATION).await
}

pub(super) async fn search(
    searcher: &SqlitePool,
    filter: &Filter,
    position: Position,
    time_limit: Duration,
) -> Result<MessagePage> {
    let mut connection = searcher.acquire().await?;
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let _guard = SearchGuard(Arc::clone(&is_abandoned));
    let end = Instant::now() + time_limit;
    // This replaces the handler of the search before.
    let goes_on = move || !is_abandoned.load(Ordering::Relaxed) && Instant::now() < end;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(CHECK_INTERVAL, goes_on);
    drop(handle);
    let mut tx = connection.begin().await?;
    let found = flow::page::<Sqlite>(&mut tx, filter, position).await;
    found.map_err(|error| {
        if Instant::now() < end {
            error.into()
        } else {
            deadline_exceeded()
        }
    })
}

fn deadline_exceeded() -> Error {
    let message = "the search takes too long: narrow it down by since, until or status";
    Error::State(kanat_model::Error::new(Code::DeadlineExceeded, message))
}
