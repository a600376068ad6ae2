//! Schedules, one for each deployed flow that the clock starts; which are due and who sees to it is
//! in `schedule/due.rs`, what became of their runs in `schedule/run.rs`.

pub mod due;
pub mod run;

use kanat_model::id::{AccountId, EnvironmentId, FlowId, ScheduleId};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Timestamp, flow};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Error, Result};
pub use run::Run;

record! {
    pub struct Schedule {
        pub id: ScheduleId,
        pub account_id: AccountId,
        pub environment_id: EnvironmentId,
        pub flow_id: FlowId,
        pub cron_expression: String,
        pub timezone: String,
        /// Timing of the deployed definition.
        pub defined: Timing { cron as "defined_cron", timezone as "defined_timezone" },
        pub enabled: bool,
        /// None while it is not enabled.
        pub next_run_at: Option<Timestamp>,
        pub revision: u64,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    } read {
        /// The flow's, as it now is; not written here.
        pub flow_name: String,
        /// The flow's, as it now is; not written here.
        pub flow_status: flow::Status,
        pub last_run: Option<Run>,
    }
}

/// When a definition says that its flow is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    pub cron: String,
    pub timezone: String,
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

statements! {
    /// Adds the schedule of a flow that has none. Its runs are written by themselves.
    fn insert(..schedule: &Schedule) =
        "INSERT INTO schedule ({COLUMNS}, claimed_until) VALUES ({VALUES}, 0)";

    fn get(environment: &EnvironmentId, id: &ScheduleId) -> Option<Schedule> =
        select!("WHERE schedule.environment_id = $1 AND schedule.id = $2");

    /// The flow's schedule, if it has one.
    fn of_flow(flow: &FlowId) -> Option<Schedule> = select!("WHERE schedule.flow_id = $1");

    /// Ends the schedule of a flow that the clock starts no longer.
    fn delete_of_flow(flow: &FlowId) = "DELETE FROM schedule WHERE flow_id = $1";
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM schedule JOIN flow ON flow.id = \
                     schedule.flow_id AND flow.deleted_at IS NULL WHERE schedule.environment_id = \
                     $1 AND ($2 = '' OR flow_id = $2)";
const LIST: &str = select!(
    "WHERE schedule.environment_id = $1 AND ($2 = '' OR flow_id = $2) ORDER BY schedule.id DESC \
     LIMIT $3 OFFSET $4"
);

/// The environment's schedules, newest first; of one flow when it is named.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    flow: Option<&FlowId>,
    page: Page,
) -> Result<ListPage<Schedule>> {
    let flow = flow.map_or("", FlowId::as_str);
    db.page(COUNT, LIST, &[environment, &flow], page).await
}

const UPDATE: &str = sql!(
    Schedule,
    "UPDATE schedule SET cron_expression = {cron_expression}, timezone = {timezone}, defined_cron \
     = {defined_cron}, defined_timezone = {defined_timezone}, enabled = {enabled}, next_run_at = \
     {next_run_at}, claimed_until = 0, revision = revision + 1, updated_at = {updated_at} WHERE \
     id = {id} AND revision = {revision}"
);

/// Writes what may change, as the next revision. Errors when the row is no longer at
/// `schedule.revision`.
pub async fn update(db: &mut Db, schedule: &mut Schedule) -> Result<()> {
    let done = db.execute(UPDATE, &schedule.values()).await?;
    Error::check_changed(done, "schedule", &schedule.id)?;
    schedule.revision += 1;
    Ok(())
}
