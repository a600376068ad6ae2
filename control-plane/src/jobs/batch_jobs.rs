//! Takes batch jobs on. Every control plane does; no record begins or is counted twice all the
//! same.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::app::{App, batch_job};

/// The longest wait between looks at jobs under way: what another process wrote wakes nobody here.
const LOOK: Duration = Duration::from_millis(250);
/// How often one that another process took is looked for, where there is none here: it is that
/// one's to begin.
const IDLE_LOOK: Duration = Duration::from_secs(1);
/// And the shortest, however often messages end.
const PAUSE: Duration = Duration::from_millis(10);

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
                sleep(PAUSE).await;
                // A log that is closing wakes nobody any more, and then nothing is left to do.
                if let Ok(Err(_)) = timeout(LOOK, ended.changed()).await {
                    return;
                }
            }
            Ok(false) => {
                failing = false;
                tokio::select! {
                    () = app.batch_jobs.notified() => {}
                    () = changes.next(IDLE_LOOK) => {}
                }
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
