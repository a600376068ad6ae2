//! Schedules, one for each deployed flow that the clock starts; which are due and who sees to it is
//! in `schedule/due.rs`, what became of their runs in `schedule/run.rs`.

pub mod due;
pub mod run;

use kanat_model::id::{AccountId, EnvironmentId, FlowId, ScheduleId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Timestamp, flow};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::{Db, Error};
pub use run::Run;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub id: ScheduleId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub flow_id: FlowId,
    /// The flow's, as it now is; not written here.
    pub flow_name: String,
    /// The flow's, as it now is; not written here.
    pub flow_status: flow::Status,
    pub cron_expression: String,
    pub timezone: String,
    /// Timing of the deployed definition.
    pub defined: Timing,
    pub enabled: bool,
    /// None while it is not enabled.
    pub next_run_at: Option<Timestamp>,
    pub last_run: Option<Run>,
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// When a definition says that its flow is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    pub cron: String,
    pub timezone: String,
}

fn read(row: &AnyRow) -> Result<Schedule, Error> {
    let status = row.text("flow_status")?;
    Ok(Schedule {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        flow_id: row.id("flow_id")?,
        flow_name: row.text("flow_name")?,
        flow_status: flow::Status::parse(&status).ok_or(Error::Corrupt {
            column: "status",
            value: status,
        })?,
        cron_expression: row.text("cron_expression")?,
        timezone: row.text("timezone")?,
        defined: Timing {
            cron: row.text("defined_cron")?,
            timezone: row.text("defined_timezone")?,
        },
        enabled: row.flag("enabled")?,
        next_run_at: row.optional_time("next_run_at")?,
        last_run: run::read(row)?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

/// A statement that reads schedules of flows that are not deleted.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT schedule.id AS id, schedule.account_id AS account_id, schedule.environment_id \
             AS environment_id, flow_id, flow.name AS flow_name, flow.status AS flow_status, \
             cron_expression, timezone, defined_cron, defined_timezone, enabled, next_run_at, \
             last_run_at, last_message_id, last_run_status, schedule.revision AS revision, \
             schedule.created_at AS created_at, schedule.updated_at AS updated_at FROM schedule \
             JOIN flow ON flow.id = schedule.flow_id AND flow.deleted_at IS NULL ",
            $rest
        )
    };
}
use select;

const INSERT: &str = "INSERT INTO schedule (id, account_id, environment_id, flow_id, \
                      cron_expression, timezone, defined_cron, defined_timezone, enabled, \
                      next_run_at, claimed_until, revision, created_at, updated_at) VALUES ($1, \
                      $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, $12, $13)";

/// Adds the schedule of a flow that has none. Its runs are written by themselves.
pub async fn insert(db: &mut Db, schedule: &Schedule) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(schedule.id.as_str())
        .bind(schedule.account_id.as_str())
        .bind(schedule.environment_id.as_str())
        .bind(schedule.flow_id.as_str())
        .bind(schedule.cron_expression.as_str())
        .bind(schedule.timezone.as_str())
        .bind(schedule.defined.cron.as_str())
        .bind(schedule.defined.timezone.as_str())
        .bind(i64::from(schedule.enabled))
        .bind(schedule.next_run_at.map(Timestamp::as_millis))
        .bind(schedule.revision.cast_signed())
        .bind(schedule.created_at.as_millis())
        .bind(schedule.updated_at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = select!("WHERE schedule.environment_id = $1 AND schedule.id = $2");

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &ScheduleId,
) -> Result<Option<Schedule>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const OF_FLOW: &str = select!("WHERE schedule.flow_id = $1");

/// The flow's schedule, if it has one.
pub async fn of_flow(db: &mut Db, flow: &FlowId) -> Result<Option<Schedule>, Error> {
    let row = sqlx::query(OF_FLOW)
        .bind(flow.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM schedule JOIN flow ON flow.id = \
                     schedule.flow_id AND flow.deleted_at IS NULL WHERE schedule.environment_id = \
                     $1 AND ($2 = '' OR flow_id = $2)";
const LIST: &str = select!(
    "WHERE schedule.environment_id = $1 AND ($2 = '' OR flow_id = $2) \
     ORDER BY schedule.id DESC LIMIT $3 OFFSET $4"
);

/// The environment's schedules, newest first; of one flow when it is named.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    flow: Option<&FlowId>,
    page: Page,
) -> Result<ListPage<Schedule>, Error> {
    let flow = flow.map_or("", FlowId::as_str);
    let total = sqlx::query(COUNT)
        .bind(environment.as_str())
        .bind(flow)
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(environment.as_str())
        .bind(flow)
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}

const UPDATE: &str = "UPDATE schedule SET cron_expression = $3, timezone = $4, defined_cron = $5, \
                      defined_timezone = $6, enabled = $7, next_run_at = $8, claimed_until = 0, \
                      revision = revision + 1, updated_at = $9 WHERE id = $1 AND revision = $2";

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `schedule.revision`.
pub async fn update(db: &mut Db, schedule: &mut Schedule) -> Result<(), Error> {
    let done = sqlx::query(UPDATE)
        .bind(schedule.id.as_str())
        .bind(schedule.revision.cast_signed())
        .bind(schedule.cron_expression.as_str())
        .bind(schedule.timezone.as_str())
        .bind(schedule.defined.cron.as_str())
        .bind(schedule.defined.timezone.as_str())
        .bind(i64::from(schedule.enabled))
        .bind(schedule.next_run_at.map(Timestamp::as_millis))
        .bind(schedule.updated_at.as_millis())
        .execute(db)
        .await?;
    if done.rows_affected() == 0 {
        return Err(Error::Changed {
            kind: "schedule",
            id: schedule.id.as_str().to_owned(),
        });
    }
    schedule.revision += 1;
    Ok(())
}

const DELETE: &str = "DELETE FROM schedule WHERE flow_id = $1";

/// Ends the schedule of a flow that the clock starts no longer.
pub async fn delete_of_flow(db: &mut Db, flow: &FlowId) -> Result<(), Error> {
    sqlx::query(DELETE).bind(flow.as_str()).execute(db).await?;
    Ok(())
}
