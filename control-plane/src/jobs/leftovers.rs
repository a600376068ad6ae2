//! Drops what nobody needs any more: batch jobs that finished long ago, records of which no job
//! came to be, what the polls of deleted flows remember, and keys on nodes that refuse them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;

use super::hourly;
use crate::app::{App, batch_job, consumer_key, flow};

/// Runs for ever. A failure waits for the next hour. Finished batch jobs are kept for `keep`, for
/// ever when there is none.
pub async fn run(app: Arc<App>, keep: Option<Duration>) {
    hourly::run(&app.store, "leftovers", || drop_all(&app, keep)).await;
}

async fn drop_all(app: &App, keep: Option<Duration>) {
    let now = Timestamp::now();
    if let Some(keep) = keep {
        log(
            "finished batch jobs",
            batch_job::drop_finished(&app.store, now.before(keep)).await,
        );
    }
    log(
        "uploads of batch jobs",
        batch_job::drop_silent(&app.store, now).await,
    );
    log(
        "polls of deleted flows",
        flow::forget_deleted_polls(app).await,
    );
    log(
        "keys whose grace is over",
        consumer_key::drop_expired(app).await,
    );
}

fn log(what: &str, dropped: Result<usize, impl Display>) {
    match dropped {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "{what} are dropped"),
        Err(error) => tracing::warn!(%error, "{what} cannot be dropped"),
    }
}

#[cfg(test)]
mod tests;
