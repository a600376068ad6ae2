//! Takes batch jobs on. Every control plane does; no record begins or is counted twice all the same.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::app::{App, batch_job};

/// The longest wait between looks at jobs under way: what another process wrote wakes nobody here.
const LOOK: Duration = Duration::from_millis(250);
/// The longest where there is none: one that another process took is that one's to begin.
const IDLE_LOOK: Duration = Duration::from_secs(1);
/// And the shortest, however often messages end.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs for ever. A store that fails is asked again at the next look, and complained about once.
pub async fn run(app: Arc<App>) {
    let mut changed = app.log.changed();
    let mut failing = false;
    loop {
        // Before the look, so that no change after it goes unseen.
        changed.borrow_and_update();
        match batch_job::drive_all(&app).await {
            Ok(true) => {
                failing = false;
                sleep(PAUSE).await;
                // A log that is closing wakes nobody any more, and then nothing is left to do.
                if let Ok(Err(_)) = timeout(LOOK, changed.changed()).await {
                    return;
                }
            }
            Ok(false) => {
                failing = false;
                // One that is told of wakes this; else it is time to look anyway.
                let _ = timeout(IDLE_LOOK, app.batch_jobs.notified()).await;
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "batch jobs cannot go on");
                }
                failing = true;
                sleep(LOOK).await;
            }
        }
    }
}
