//! Times at which schedules are due, and what a deploy of a flow makes of its schedule.

use kanat_flow::Definition;
use kanat_flow::definition::Trigger;
use kanat_flow::schedule::{CronExpression, TimeZone, timezone};
use kanat_model::id::ScheduleId;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::Db;
use kanat_store::flow::Flow;
use kanat_store::schedule::{self, Schedule, Timing};

/// Id of the schedule in tests of a flow that has none yet.
const ID_IN_TESTS: &str = "sch_test";

/// Brings the stored schedule of a flow in line with the definition that is being deployed. A value
/// that differs from the formerly deployed definition replaces the stored one. Otherwise a change
/// through the API since the last deploy stays. Without a schedule trigger, the stored schedule is
/// deleted.
pub async fn sync_schedule_with_definition(
    db: &mut Db,
    flow: &Flow,
    definition: &Definition,
    now: Timestamp,
) -> Result<()> {
    let Some(defined) = defined(definition) else {
        return Ok(schedule::delete_of_flow(db, &flow.id).await?);
    };
    match schedule::of_flow(db, &flow.id).await? {
        None => {
            let mut schedule = new(flow, defined, now);
            schedule.next_run_at = next_run(&schedule, now)?;
            Ok(schedule::insert(db, &schedule).await?)
        }
        Some(before) if before.defined == defined => Ok(()),
        Some(before) => {
            let mut schedule = redefined(before.clone(), defined);
            schedule.updated_at = now;
            if (&schedule.cron_expression, &schedule.timezone)
                != (&before.cron_expression, &before.timezone)
            {
                schedule.next_run_at = next_run(&schedule, now)?;
            }
            Ok(schedule::update(db, &mut schedule).await?)
        }
    }
}

/// Returns the schedule that a deploy of the definition would leave; none where the clock does not
/// start the flow.
pub async fn after_deploy(
    db: &mut Db,
    flow: &Flow,
    definition: &Definition,
    now: Timestamp,
) -> Result<Option<Schedule>> {
    let Some(defined) = defined(definition) else {
        return Ok(None);
    };
    let before = schedule::of_flow(db, &flow.id).await?;
    Ok(Some(match before {
        None => Schedule {
            id: ScheduleId::from(ID_IN_TESTS),
            ..new(flow, defined, now)
        },
        Some(before) => redefined(before, defined),
    }))
}

/// Returns the times of a definition that the clock starts.
fn defined(definition: &Definition) -> Option<Timing> {
    let Trigger::Schedule(said) = &definition.source.trigger else {
        return None;
    };
    Some(Timing {
        cron: said.cron.as_str().to_owned(),
        timezone: said.timezone_name.clone(),
    })
}

/// Takes over each value that differs from the former definition. A value that is the same may have
/// been changed since by an update of the schedule, and stays; so does whether the schedule is
/// enabled.
fn redefined(schedule: Schedule, defined: Timing) -> Schedule {
    let Timing { cron, timezone } = defined.clone();
    Schedule {
        cron_expression: if cron == schedule.defined.cron {
            schedule.cron_expression
        } else {
            cron
        },
        timezone: if timezone == schedule.defined.timezone {
            schedule.timezone
        } else {
            timezone
        },
        defined,
        ..schedule
    }
}

fn new(flow: &Flow, defined: Timing, now: Timestamp) -> Schedule {
    Schedule {
        id: ScheduleId::generate(),
        account_id: flow.account_id.clone(),
        environment_id: flow.environment_id.clone(),
        flow_id: flow.id.clone(),
        flow_name: flow.name.clone(),
        flow_status: flow.status,
        cron_expression: defined.cron.clone(),
        timezone: defined.timezone.clone(),
        defined,
        enabled: true,
        next_run_at: None,
        last_run: None,
        revision: 1,
        created_at: now,
        updated_at: now,
    }
}

/// One run of a schedule.
pub struct ScheduledRun<'a> {
    pub schedule: &'a Schedule,
    /// The time that it is for.
    pub due: Timestamp,
    pub manual: bool,
}

impl ScheduledRun<'_> {
    /// Returns the payload of its message, which is JSON.
    pub fn payload(&self) -> String {
        let Schedule { id, timezone, .. } = self.schedule;
        format!(
            r#"{{"schedule_id":"{id}","scheduled_at":"{}","timezone":"{timezone}","manual":{}}}"#,
            self.due, self.manual
        )
    }
}

/// Returns when a schedule is due after `now`; never while it is not enabled.
pub fn next_run(schedule: &Schedule, now: Timestamp) -> Result<Option<Timestamp>> {
    let (cron, zone) = parsed(schedule)?;
    Ok(if schedule.enabled {
        cron.next_after(now, &zone)
    } else {
        None
    })
}

/// Returns the expression and the zone of a schedule, as they were checked when they were written.
pub fn parsed(schedule: &Schedule) -> Result<(CronExpression, TimeZone)> {
    Ok((
        cron("cron_expression", &schedule.cron_expression)?,
        zone("timezone", &schedule.timezone)?,
    ))
}

/// Reads a cron expression.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for `field`.
pub fn cron(field: &str, text: &str) -> Result<CronExpression> {
    CronExpression::parse(text).map_err(|why| Error::field(field, why))
}

/// Reads the name of a time zone.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for `field`.
pub fn zone(field: &str, name: &str) -> Result<TimeZone> {
    timezone(name).map_err(|why| Error::field(field, why))
}
