//! Firing what is due. Several control planes do it side by side: a claim keeps them from doing the
//! same work, and what makes a due time one message is its key in the message log, whoever dies in
//! between.

use std::time::Duration;

use futures::StreamExt;
use kanat_message_log::{DedupeKey, key};
use kanat_model::flow::Status;
use kanat_model::message::Trigger;
use kanat_model::{Result, Timestamp};
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::schedule::due::{self, DueSchedule};
use kanat_store::schedule::{self, Schedule, run};

use crate::app::App;
use crate::app::flow::{Start, StartedMessage, deployed_plan, start};
use crate::app::timetable::{ScheduledRun, parsed};

/// How long the one that claimed a due time has for it before another takes over.
const CLAIM: Duration = Duration::from_secs(10);

/// How many are claimed together.
const BATCH: u32 = 100;

/// How many are fired side by side.
const AT_ONCE: usize = 4;

/// How much longer a due time is remembered than until the next one: a control plane that stood
/// still in the midst of a firing may come back to it within this time.
const SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// Fires what is due at `now`; says when to look again. What cannot be fired is logged, and tried
/// again after a while.
pub async fn fire_due(app: &App, now: Timestamp) -> Result<Option<Timestamp>> {
    loop {
        let first = due::first(&mut *app.store.read().await?, now).await?;
        if first.is_none_or(|first| first > now) {
            return Ok(first);
        }
        let mut tx = app.store.begin().await?;
        let claimed = due::claim(&mut tx, now, now.after(CLAIM), BATCH).await?;
        tx.commit().await?;
        futures::stream::iter(claimed)
            .for_each_concurrent(AT_ONCE, |due| async move {
                if let Err(error) = fire(app, &due, now).await {
                    tracing::warn!(schedule.id = %due.id, %error, "a schedule cannot be fired");
                }
            })
            .await;
    }
}

/// Starts a run. All runs that were missed while no control plane ran are one run, at the last time
/// that was due.
async fn fire(app: &App, due: &DueSchedule, now: Timestamp) -> Result<()> {
    let mut tx = app.store.read().await?;
    let Some(schedule) = schedule::get(&mut tx, &due.environment_id, &due.id).await? else {
        return Ok(());
    };
    // Paused, changed or fired since it was claimed.
    let Some(first) = schedule.next_run_at.filter(|at| *at <= now) else {
        return Ok(());
    };
    if schedule.flow_status != Status::Active {
        return Ok(());
    }
    let plan = deployed_plan(app, &mut tx, &schedule.environment_id, &schedule.flow_id).await?;
    drop(tx);
    let Some(plan) = plan else { return Ok(()) };

    let (cron, zone) = parsed(&schedule)?;
    let last = cron.last_until(first, now, &zone);
    let next = cron.next_after(now, &zone);
    let remembered = next.map_or(SLACK, |next| next.since(last).saturating_add(SLACK));
    let run = ScheduledRun {
        schedule: &schedule,
        due: last,
        manual: false,
    };
    let key = key::schedule(&schedule.id, last, remembered);
    let started = start(app, start_of(&run, plan, now, Some(key), None)).await?;
    kanat_failpoint::hit("schedule.fired");

    let at = begun_at(app, &schedule, &started, now).await?;
    let mut tx = app.store.begin().await?;
    run::record(&mut tx, &schedule.id, at, &started.message_id).await?;
    due::advance(&mut tx, &schedule.id, schedule.revision, first, next).await?;
    Ok(tx.commit().await?)
}

/// When the run began: earlier than now, where somebody had started it already and could not note
/// it.
async fn begun_at(
    app: &App,
    schedule: &Schedule,
    started: &StartedMessage,
    now: Timestamp,
) -> Result<Timestamp> {
    if !started.duplicate {
        return Ok(now);
    }
    let message = app
        .log
        .get(&super::outcome::tenant(schedule), &started.message_id)
        .await?;
    Ok(message.map_or(now, |message| message.received_at))
}

/// Returns the message of a run; flows see as their payload what it is for.
pub fn start_of(
    run: &ScheduledRun,
    plan: FlowPlan,
    at: Timestamp,
    dedupe: Option<DedupeKey>,
    traceparent: Option<String>,
) -> Start {
    Start {
        plan,
        payload: run.payload(),
        trigger: Trigger::Schedule,
        at,
        dedupe,
        batch_id: None,
        traceparent,
    }
}
