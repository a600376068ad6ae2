//! Work at full hours or minutes, done by one control plane of several: the first that claims it.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_store::{Store, periodic_task};
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which the store is asked whether the work is due.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Does the work of that name for ever, first at once. A failure of the work waits for the next
/// time.
pub async fn run<W, F>(store: &Store, name: &str, period: Duration, work: W)
where
    W: Fn() -> F,
    F: Future<Output = ()>,
{
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        ticks.tick().await;
        let due = due(Timestamp::now(), period);
        if last == Some(due) {
            continue;
        }
        match take(store, name, due).await {
            Ok(true) => work().await,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, job = name, "cannot see whether a job is due");
                continue;
            }
        }
        last = Some(due);
    }
}

async fn take(store: &Store, name: &str, due: Timestamp) -> Result<bool, kanat_store::Error> {
    let mut tx = store.begin().await?;
    let taken = periodic_task::take(&mut tx, name, due).await?;
    tx.commit().await?;
    Ok(taken)
}

/// The last time at which the work was due.
fn due(now: Timestamp, period: Duration) -> Timestamp {
    let period = i64::try_from(period.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis() - now.as_millis().rem_euclid(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[test]
    fn it_is_due_at_full_hours() {
        let ten = Timestamp::from_millis(1_769_853_600_000);
        assert_eq!(ten.to_string(), "2026-01-31T10:00:00.000Z");
        assert_eq!(due(ten, HOUR), ten);
        assert_eq!(
            due(Timestamp::from_millis(ten.as_millis() + 3_599_999), HOUR),
            ten
        );
        assert_eq!(
            due(Timestamp::from_millis(ten.as_millis() - 1), HOUR),
            Timestamp::from_millis(ten.as_millis() - 3_600_000)
        );
    }

    #[tokio::test]
    async fn of_several_control_planes_one_takes_up_each_hour() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        let hour = Timestamp::from_millis(0);
        let next = due(Timestamp::now(), HOUR);
        let mut taken = Vec::new();
        for due in [hour, hour, next, hour, next] {
            taken.push(take(&store, "sweep", due).await.unwrap());
        }
        assert_eq!(taken, [true, false, true, false, false]);
        assert!(take(&store, "another", next).await.unwrap());
    }
}
