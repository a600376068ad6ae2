//! Use-cases of schedules: one for each deployed flow that the clock starts. Deploys create and
//! delete them (`timetable.rs`); `schedule/fire.rs` starts what is due.

mod fire;
mod outcome;
#[cfg(test)]
mod tests;

use kanat_flow::schedule::TimeZone;
use kanat_message_log::key;
use kanat_model::flow::Status;
use kanat_model::id::{FlowId, MessageId, ScheduleId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Timestamp};
use kanat_store::Tx;
use kanat_store::schedule::{self, Schedule, run};
use serde_json::json;

use crate::app::audit::{self, Audited};
use crate::app::faults::both;
use crate::app::flow::{append, deployed_plan, prepare};
use crate::app::timetable::{ScheduledRun, cron, next_run, parsed, zone};
use crate::app::{App, Call, resource};
pub use fire::fire_due;
pub use outcome::settle;

resource!(
    "schedule",
    ScheduleId,
    Schedule,
    schedule::get,
    environment_id,
    revision
);

/// How many times at which it is due a single read shows.
const NEXT_RUNS: usize = 10;

const MAX_PREVIEW: u32 = 500;

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    pub cron_expression: Option<String>,
    pub timezone: Option<String>,
    pub enabled: Option<bool>,
}

/// A cron expression to be tried out.
#[derive(Debug, Default)]
pub struct Preview {
    pub cron_expression: String,
    /// UTC when left out.
    pub timezone: Option<String>,
    /// ISO 8601; now when left out.
    pub after: Option<String>,
    /// Ten when left out.
    pub count: Option<u32>,
}

/// A schedule with the next times at which it is due.
#[derive(Debug)]
pub struct Details {
    pub schedule: Schedule,
    pub next_runs: Vec<Timestamp>,
}

/// The environment's schedules, newest first; those of one flow when it is named.
pub async fn list(call: &Call, flow: Option<&FlowId>, page: Page) -> Result<ListPage<Schedule>> {
    let mut tx = call.read().await?;
    let ListPage { items, total, page } =
        schedule::list(&mut tx, &call.caller.environment_id, flow, page).await?;
    if let Some(id) = flow.filter(|_| total == 0) {
        call.existing(&mut tx, id).await?;
    }
    drop(tx);
    Ok(ListPage {
        items: outcome::live(&call.app, items).await?,
        total,
        page,
    })
}

/// One schedule.
pub async fn get(call: &Call, id: &ScheduleId) -> Result<Details> {
    let schedule = call.get(id).await?;
    details(&call.app, schedule).await
}

/// Changes what the update names; then it is due at the next time after now.
pub async fn update(call: &Call, id: &ScheduleId, update: Update) -> Result<Details> {
    let mut tx = call.write().await?;
    let (mut schedule, is_repeat) = call.load_for_change(&mut tx, id).await?;
    if is_repeat {
        return details(&call.app, schedule).await;
    }
    let before = schedule.clone();
    let cron = update
        .cron_expression
        .map(|text| cron("cron_expression", &text))
        .transpose();
    let zone = update
        .timezone
        .map(|name| zone("timezone", &name).map(|_| name))
        .transpose();
    let (cron, zone) = both(cron, zone)?;
    if let Some(cron) = cron {
        schedule.cron_expression = cron.as_str().to_owned();
    }
    if let Some(name) = zone {
        schedule.timezone = name;
    }
    schedule.enabled = update.enabled.unwrap_or(schedule.enabled);
    if schedule != before {
        schedule.updated_at = Timestamp::now();
        schedule.next_run_at = next_run(&schedule, schedule.updated_at)?;
        schedule::update(&mut tx, &mut schedule).await?;
    }
    audit::updated(call, &mut tx, &before, &schedule).await?;
    tx.commit().await?;
    details(&call.app, schedule).await
}

/// Runs the flow now, beside its cycle; also when the schedule is not enabled. A paused flow holds
/// the message.
pub async fn trigger(call: &Call, id: &ScheduleId) -> Result<MessageId> {
    let mut tx: Tx = call.read().await?;
    let schedule = call.existing(&mut tx, id).await?;
    let plan = deployed_plan(
        &call.app,
        &mut tx,
        &schedule.environment_id,
        &schedule.flow_id,
    )
    .await?;
    drop(tx);
    let plan = plan.ok_or_else(|| missing(id))?;
    let at = Timestamp::now();
    let run = ScheduledRun {
        schedule: &schedule,
        due: at,
        manual: true,
    };
    let start = fire::start_of(
        &run,
        plan,
        at,
        call.caller.idempotency_id.as_deref().map(key::management),
        call.trace_context.clone(),
    );
    let message = prepare(&call.app, start).await?;
    let after = json!({ "messageId": message.id });
    audit::record_before_work(call, schedule.entity(), Some(after)).await?;
    let started = append(&call.app, message).await?;
    if let Err(error) = noted(&call.app, &schedule.id, at, &started.message_id).await {
        // The message is under way: to say that nothing happened would be wrong.
        tracing::warn!(
            schedule.id = %schedule.id,
            %error,
            "a run that was started by hand cannot be noted",
        );
    }
    Ok(started.message_id)
}

/// The times at which an expression is due.
pub fn preview(preview: &Preview) -> Result<Vec<Timestamp>> {
    let cron = cron("cronExpression", &preview.cron_expression);
    let zone = preview
        .timezone
        .as_deref()
        .map_or(Ok(TimeZone::UTC), |name| zone("timezone", name));
    let (cron, zone) = both(cron, zone)?;
    let after = match preview.after.as_deref() {
        None => Timestamp::now(),
        Some(text) => Timestamp::parse(text).ok_or_else(|| {
            Error::field(
                "after",
                format!("{text:?} is no instant, as in 2026-01-31T08:15:00Z"),
            )
        })?,
    };
    let count = preview
        .count
        .map_or(NEXT_RUNS, |count| count.min(MAX_PREVIEW) as usize);
    Ok(cron.upcoming(after, &zone, count))
}

/// Returns whether the clock starts it: it is enabled, and its flow is not paused.
pub fn is_running(schedule: &Schedule) -> bool {
    schedule.enabled && schedule.flow_status == Status::Active
}

async fn noted(app: &App, id: &ScheduleId, at: Timestamp, message: &MessageId) -> Result<()> {
    let mut tx = app.store.begin().await?;
    run::record(&mut tx, id, at, message).await?;
    Ok(tx.commit().await?)
}

fn missing(id: &ScheduleId) -> Error {
    Error::not_found("schedule", id.as_str())
}

async fn details(app: &App, schedule: Schedule) -> Result<Details> {
    let next_runs = match schedule.next_run_at.filter(|_| is_running(&schedule)) {
        None => Vec::new(),
        Some(next) => {
            let (cron, zone) = parsed(&schedule)?;
            let later = cron.upcoming(next, &zone, NEXT_RUNS - 1);
            std::iter::once(next).chain(later).collect()
        }
    };
    Ok(Details {
        schedule: outcome::live_one(app, schedule).await?,
        next_runs,
    })
}
