//! Takes batch jobs on. Every control plane does; no record begins or is counted twice all the
//! same.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::app::{App, batch_job};

/// Poll interval while jobs are running: a write of another process wakes nobody here.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Poll interval while this process runs no job: the process that accepts a job begins it.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two passes, however often messages end.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Runs for ever. A store that fails is asked again at the next look, and complained about once.
pub async fn run(app: Arc<App>) {
    let mut ended = app.log.changed();
    let mut changes = app.store.changes();
    let mut failing = false;
    loop {
        // Before the look, so that no change after it goes unseen.
        ended.borrow_and_update();
        match batch_job::drive_all(&app).await {
            Ok(true) => {
                failing = false;
                sleep(MIN_INTERVAL).await;
                // A log that is closing wakes nobody any more, and then nothing is left to do.
                if let Ok(Err(_)) = timeout(POLL_INTERVAL, ended.changed()).await {
                    return;
                }
            }
            Ok(false) => {
                failing = false;
                tokio::select! {
                    () = app.batch_jobs.notified() => {}
                    () = changes.next(IDLE_POLL_INTERVAL) => {}
                }
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "batch jobs cannot go on");
                }
                failing = true;
                sleep(POLL_INTERVAL).await;
            }
        }
    }
}
