//! Writes down how the runs of schedules ended, while the log still has their messages.

use std::sync::Arc;
use std::time::Duration;

use super::periodic;
use crate::app::{App, schedule};

/// It is due at every full minute.
const PERIOD: Duration = Duration::from_secs(60);

/// Runs for ever. A failure waits for the next minute.
pub async fn run(app: Arc<App>) {
    periodic::run(&app.store, "schedule_outcomes", PERIOD, || async {
        if let Err(error) = schedule::settle(&app).await {
            tracing::warn!(%error, "cannot see how the runs of schedules ended");
        }
    })
    .await;
}
