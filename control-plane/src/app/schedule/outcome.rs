//! Outcomes of the last runs, as their messages tell for as long as the log keeps them.

use futures::{StreamExt, TryStreamExt};
use kanat_message_log::Tenant;
use kanat_model::id::ScheduleId;
use kanat_model::schedule::RunStatus;
use kanat_model::{Result, Timestamp};
use kanat_store::schedule::{Run, Schedule, run};

use crate::app::App;

const BATCH: u32 = 500;

/// How many messages are asked for side by side.
const AT_ONCE: usize = 8;

/// Schedules with the last runs as they now stand.
pub async fn live(app: &App, schedules: Vec<Schedule>) -> Result<Vec<Schedule>> {
    futures::stream::iter(schedules)
        .map(|schedule| live_one(app, schedule))
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// A schedule with its last run as it now stands. A run that failed may have been retried since.
pub async fn live_one(app: &App, mut schedule: Schedule) -> Result<Schedule> {
    let tenant = tenant(&schedule);
    if let Some(run) = schedule
        .last_run
        .as_mut()
        .filter(|run| run.status != RunStatus::Success)
    {
        run.status = status(app, &tenant, run).await?.unwrap_or(run.status);
    }
    Ok(schedule)
}

/// Writes down how the runs ended that have, before the log forgets their messages.
pub async fn settle(app: &App) -> Result<()> {
    let mut place = (Timestamp::from_millis(i64::MIN), ScheduleId::new(""));
    loop {
        let found = run::running(&mut *app.store.read().await?, (place.0, &place.1), BATCH).await?;
        for schedule in &found {
            let Some(run) = &schedule.last_run else {
                continue;
            };
            // A message that nobody has any more did not arrive, as far as anybody can tell.
            let status = status(app, &tenant(schedule), run)
                .await?
                .unwrap_or(RunStatus::Failed);
            if status != RunStatus::Running {
                let mut tx = app.store.begin().await?;
                run::end(&mut tx, &schedule.id, &run.message_id, status).await?;
                tx.commit().await?;
            }
            place = (run.at, schedule.id.clone());
        }
        if found.len() < BATCH as usize {
            return Ok(());
        }
    }
}

/// Returns the tenant of the schedule's messages.
pub fn tenant(schedule: &Schedule) -> Tenant {
    Tenant {
        account_id: schedule.account_id.clone(),
        environment_id: schedule.environment_id.clone(),
    }
}

/// None when the log does not have the message.
async fn status(app: &App, tenant: &Tenant, run: &Run) -> Result<Option<RunStatus>> {
    let message = app.log.get(tenant, &run.message_id).await?;
    Ok(message.map(|message| RunStatus::of(message.status)))
}
