//! Writes down how the runs of schedules ended, while the log still has their messages.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::{Error, Timestamp};
use kanat_store::{Store, periodic_task};
use tokio::time::{MissedTickBehavior, interval};

use crate::app::{App, schedule};

const NAME: &str = "schedule_outcomes";

/// It is due at every full minute.
const EVERY: Duration = Duration::from_secs(60);

/// Runs for ever. A failure waits for the next minute.
pub async fn run(app: Arc<App>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = settle(&app, Timestamp::now()).await {
            tracing::warn!(%error, "cannot see how the runs of schedules ended");
        }
    }
}

async fn settle(app: &App, now: Timestamp) -> Result<(), Error> {
    if take(&app.store, due(now)).await? {
        schedule::settle(app).await
    } else {
        Ok(())
    }
}

async fn take(store: &Store, due: Timestamp) -> Result<bool, Error> {
    let mut tx = store.begin().await?;
    let taken = periodic_task::take(&mut tx, NAME, due).await?;
    tx.commit().await?;
    Ok(taken)
}

/// The last full minute.
fn due(now: Timestamp) -> Timestamp {
    let minute = i64::try_from(EVERY.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis() - now.as_millis().rem_euclid(minute))
}
