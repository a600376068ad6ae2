//! Background tasks of an open log: they create the partitions of each day before its messages
//! arrive, and release leases that no caller took.

use std::time::Duration;

use futures::future::join_all;
use kanat_model::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::day;
use super::operation::Work;
use super::options::Connections;
use super::pool::Pool;
use super::queue::Queue;
use crate::Error;
use crate::change::Change;

const DAY_MS: i64 = 86_400_000;
/// Between two looks at the calendar.
const CALENDAR: Duration = Duration::from_secs(30);
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Leases that are released together.
const RELEASE_BATCH: usize = 1_000;

/// Prepares each new day, until the log is closed.
pub(super) async fn prepare_days(
    pool: Pool,
    connecting: Connections,
    mut prepared: i64,
    closing: CancellationToken,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CALENDAR) => {}
            () = closing.cancelled() => return,
        }
        if Timestamp::now().as_millis().div_euclid(DAY_MS) == prepared {
            continue;
        }
        let patience = connecting.patience();
        let preparing =
            async { day::prepare(&mut *pool.current().acquire().await?, connecting.space).await };
        match patience.answered(preparing).await {
            Ok(today) => prepared = today,
            // Tomorrow was prepared today, so there is time.
            Err(error) => {
                tracing::warn!(error = %error, "the message log could not prepare a new day yet")
            }
        }
    }
}

/// Releases leases whose callers went away before they got them, until the log is closed. Leases
/// that are left then end with their node.
pub(super) async fn release(
    mut releases: mpsc::UnboundedReceiver<Change>,
    queue: Queue,
    closing: CancellationToken,
) {
    let mut changes = Vec::new();
    loop {
        tokio::select! {
            received = releases.recv_many(&mut changes, RELEASE_BATCH) => {
                if received == 0 {
                    return;
                }
            }
            () = closing.cancelled() => return,
        }
        while !changes.is_empty() && !closing.is_cancelled() {
            let submitted = changes.iter().map(Change::clone);
            let results =
                join_all(submitted.map(|change| queue.submit(Work::Settle(Box::new(change)))))
                    .await;
            let mut results = results.into_iter();
            changes.retain(|_| matches!(results.next(), Some(Err(Error::Unavailable(_)))));
            if !changes.is_empty() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}
