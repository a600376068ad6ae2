//! Lists that look into payloads, which may read all messages of a flow: one at a time, on a
//! connection of their own, for a bounded time, and no longer than their caller waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kanat_model::Code;
use sqlx::SqlitePool;

use super::list;
use crate::{Error, Filter, MessagePage, Position};

/// Longest time that a search takes.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Instructions of SQLite's machine between two looks at the clock.
const STRETCH: i32 = 10_000;

/// Ends a search when it is dropped.
struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lists the messages of a flow that have a text in them.
///
/// # Errors
/// `DEADLINE_EXCEEDED` when it takes longer than 20 s, and all of [`list::list`].
pub(super) async fn list(
    searcher: &SqlitePool,
    filter: &Filter,
    position: Position,
) -> Result<MessagePage, Error> {
    search(searcher, filter, position, TIME_LIMIT).await
}

pub(super) async fn search(
    searcher: &SqlitePool,
    filter: &Filter,
    position: Position,
    time_limit: Duration,
) -> Result<MessagePage, Error> {
    let mut connection = searcher.acquire().await?;
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let _caller = Caller(Arc::clone(&is_abandoned));
    let end = Instant::now() + time_limit;
    // It takes the place of that of the search before.
    let goes_on = move || !is_abandoned.load(Ordering::Relaxed) && Instant::now() < end;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STRETCH, goes_on);
    drop(handle);
    let found = list::list(&mut connection, filter, position).await;
    found.map_err(|error| if Instant::now() < end { error } else { late() })
}

fn late() -> Error {
    let message = "the search takes too long: narrow it down by since, until or status";
    Error::State(kanat_model::Error::new(Code::DeadlineExceeded, message))
}
