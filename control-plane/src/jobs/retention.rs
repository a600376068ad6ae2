//! Drops finished messages that are older than they are kept for.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::MessageLog;
use kanat_model::Timestamp;
use kanat_store::{Store, periodic_task};
use tokio::time::{MissedTickBehavior, interval};

const NAME: &str = "retention";

/// It is due at every full hour.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// How often it is seen to whether it is due.
const LOOK: Duration = Duration::from_secs(60);

/// Runs for ever. A failure waits for the next hour.
pub async fn run(store: Store, log: Arc<dyn MessageLog>, keep: Duration) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        looks.tick().await;
        let due = due(Timestamp::now());
        if last == Some(due) {
            continue;
        }
        match take(&store, due).await {
            Ok(true) => drop_old(log.as_ref(), keep).await,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot see whether old messages are to be dropped");
                continue;
            }
        }
        last = Some(due);
    }
}

async fn take(store: &Store, due: Timestamp) -> Result<bool, kanat_store::Error> {
    let mut tx = store.begin().await?;
    let taken = periodic_task::take(&mut tx, NAME, due).await?;
    tx.commit().await?;
    Ok(taken)
}

async fn drop_old(log: &dyn MessageLog, keep: Duration) {
    match log.retain(Timestamp::now().before(keep)).await {
        Ok(0) => {}
        Ok(messages) => tracing::info!(messages, "old messages are dropped"),
        Err(error) => tracing::warn!(%error, "old messages cannot be dropped"),
    }
}

/// The last full hour.
fn due(now: Timestamp) -> Timestamp {
    let hour = i64::try_from(EVERY.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis() - now.as_millis().rem_euclid(hour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_at_full_hours() {
        let ten = Timestamp::from_millis(1_769_853_600_000);
        assert_eq!(ten.to_string(), "2026-01-31T10:00:00.000Z");
        assert_eq!(due(ten), ten);
        assert_eq!(due(Timestamp::from_millis(ten.as_millis() + 3_599_999)), ten);
        assert_eq!(
            due(Timestamp::from_millis(ten.as_millis() - 1)),
            Timestamp::from_millis(ten.as_millis() - 3_600_000)
        );
    }

    #[tokio::test]
    async fn of_several_control_planes_one_takes_up_each_hour() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db")).await.unwrap();
        let hour = Timestamp::from_millis(0);
        let next = due(Timestamp::now());
        let mut taken = Vec::new();
        for due in [hour, hour, next, hour, next] {
            taken.push(take(&store, due).await.unwrap());
        }
        assert_eq!(taken, [true, false, true, false, false]);
    }
}
