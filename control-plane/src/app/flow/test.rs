//! The test of a draft: a run that sends nothing. Evaluator, rendering of calls and trace are those
//! of nodes.

mod run;
mod sample;

use kanat_engine::Program;
use kanat_flow::Definition;
use kanat_model::id::FlowId;
use kanat_model::message::Failure;
use kanat_model::trace::TraceRecord;
use kanat_model::{Error, Timestamp};
use kanat_store::Db;
use kanat_store::flow::Flow;

use super::names::{EnvironmentNames, Lenient};
use super::samples::Samples;
use super::{definition, fields, identity};
use crate::app::timetable::ScheduledRun;
use crate::app::{Call, timetable};
pub use sample::Sample;

/// Result of a test.
#[derive(Debug)]
pub struct TestResult {
    /// True when the condition held.
    pub matched: bool,
    /// JSON; absent when the condition was false or the mapping failed.
    pub output: Option<String>,
    /// Reasons why there is no output: the one that a run would end with, and those of other
    /// fields of the mapping.
    pub failures: Vec<Failure>,
    pub trace: Vec<TraceRecord>,
}

/// Runs the draft on a sample. Connectors and tables that do not exist yet are no obstacle where
/// nothing needs them. A flow that the clock starts gets the payload of its next run when the
/// sample has none.
pub async fn test(call: &Call, id: &FlowId, sample: Sample) -> Result<TestResult, Error> {
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    let definition = definition::checked(&call.app.sealer, &flow)?;
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    fields::refuse_exposed(&definition, &names)?;
    let plan = kanat_flow::compile(&definition, &Lenient(&names), identity(&flow))
        .map_err(|faults| definition::invalid("the definition cannot be compiled", &faults))?;
    let now = Timestamp::now();
    let sample = match sample.payload {
        Some(_) => sample,
        None => Sample {
            payload: scheduled(&mut tx, &flow, &definition, now).await?,
            ..sample
        },
    };
    let sample = sample.check(&plan, now)?;
    let samples = Samples::load(
        &call.app,
        &mut tx,
        &call.caller.environment_id,
        &plan,
        &names,
    )
    .await?;
    drop(tx);
    let program =
        Program::compile(plan).map_err(|error| Error::field("yamlConfig", error.to_string()))?;
    Ok(run::run(call, &program, &samples, &sample, now).await)
}

/// Returns the payload of the next run by the clock; none where the clock does not start the flow.
async fn scheduled(
    db: &mut Db,
    flow: &Flow,
    definition: &Definition,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    let Some(schedule) = timetable::after_deploy(db, flow, definition, now).await? else {
        return Ok(None);
    };
    let (cron, zone) = timetable::parsed(&schedule)?;
    let run = ScheduledRun {
        due: cron.next_after(now, &zone).unwrap_or(now),
        schedule: &schedule,
        manual: false,
    };
    Ok(Some(run.payload()))
}
