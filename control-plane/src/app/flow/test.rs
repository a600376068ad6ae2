//! The test of a draft: the same evaluator and the same tables as in service, and no delivery.

use bytes::Bytes;
use kanat_engine::{Calling, Input, Outcome, Program, Request, Resources};
use kanat_mapping::json;
use kanat_model::id::FlowId;
use kanat_model::message::Failure;
use kanat_model::{Error, Timestamp};
use kanat_script::Report;

use super::names::{EnvironmentNames, Lenient};
use super::samples::Samples;
use super::{definition, existing, identity, start};
use crate::app::{App, Caller, adapter};

/// What a test came to.
#[derive(Debug)]
pub struct Tested {
    /// The payload that was tested.
    pub payload: String,
    pub began_at: Timestamp,
    /// Whether the condition held.
    pub matched: bool,
    /// JSON; absent when the condition was false or the mapping failed.
    pub output: Option<String>,
    pub failure: Option<Failure>,
    pub duration_ms: u32,
    /// What its adapters did.
    pub adapters: Vec<Report>,
    /// What its steps would do, in their order; none where the condition was false.
    pub steps: Vec<StepTested>,
}

/// A step that was not called. Expressions of outputs of earlier steps find nothing in a test.
#[derive(Debug)]
pub struct StepTested {
    pub name: String,
    /// JSON of the request that it would make, without headers; `None` when its condition is false.
    pub request: Result<Option<String>, Failure>,
}

/// Applies condition and mapping of the draft to a payload, JSON text. Connectors and tables that do not exist yet are
/// no obstacle where the mapping does not need them.
pub async fn test(app: &App, caller: &Caller, id: &FlowId, payload: String) -> Result<Tested, Error> {
    check_json("sampleData", &payload)?;
    let mut tx = app.store.read().await?;
    let flow = existing(&mut tx, caller, id).await?;
    let definition = definition::parse(&flow.yaml_config)?;
    let names = EnvironmentNames::load(&mut tx, &caller.environment_id).await?;
    let plan = kanat_flow::compile(&definition, &Lenient(&names), identity(&flow))
        .map_err(|faults| definition::invalid("the definition cannot be compiled", &faults))?;
    let samples = Samples::load(app, &mut tx, &caller.environment_id, &plan, &names).await?;
    drop(tx);
    let program = Program::compile(plan).map_err(|error| Error::field("yamlConfig", error.to_string()))?;
    let now = Timestamp::now();
    let trigger = start::request_json(now);
    let input = Input { payload: payload.as_bytes(), trigger: trigger.as_bytes(), steps: b"{}", now };
    let mut calls = kanat_script::Caller::new(&app.adapters, adapter::key(caller), adapter::TEST_CONTEXT);
    let ran = if program.uses_adapters() {
        calls.evaluate(&samples, |adapters| run(&program, &input, &Calling::new(&samples, adapters))).await
    } else {
        run(&program, &input, &samples)
    };
    let adapters = calls.take_reports();
    let duration_ms = u32::try_from(Timestamp::now().since(now).as_millis()).unwrap_or(u32::MAX);
    let Ran { outcome, steps } = ran;
    let steps = steps.into_iter().map(|step| step.masked(&samples)).collect();
    let failure = None;
    let tested = Tested { payload, began_at: now, matched: true, output: None, failure, duration_ms, adapters, steps };
    Ok(judge(outcome, &samples, tested))
}

struct Ran {
    outcome: Result<Outcome, Failure>,
    steps: Vec<StepTested>,
}

/// The whole of a run but its calls of connectors.
fn run(program: &Program, input: &Input<'_>, resources: &dyn Resources) -> Ran {
    // A sample that is a string stands for a body of that text.
    let text = std::str::from_utf8(input.payload).unwrap_or_default();
    let raw_body = if text.starts_with('"') { json::decode(text) } else { text.into() };
    let adapted = match program.adapt(input, raw_body.as_bytes(), resources) {
        Ok(adapted) => adapted,
        Err(failure) => return Ran { outcome: Err(failure), steps: Vec::new() },
    };
    let input = Input { payload: adapted.as_deref().unwrap_or(input.payload), ..*input };
    match program.admits(&input, resources) {
        Ok(true) => {}
        Ok(false) => return Ran { outcome: Ok(Outcome::Filtered), steps: Vec::new() },
        Err(failure) => return Ran { outcome: Err(failure), steps: Vec::new() },
    }
    let steps = program.steps().iter().map(|step| StepTested {
        name: step.name().to_owned(),
        request: program.step_request(step, &input, resources).map(|made| made.as_ref().map(shown)),
    });
    Ran { steps: steps.collect(), outcome: map(program, &input, resources).map(Outcome::Mapped) }
}

fn map(program: &Program, input: &Input<'_>, resources: &dyn Resources) -> Result<Bytes, Failure> {
    let mapped = program.map(input, resources)?;
    let output = program.adapt_output(&mapped, resources)?;
    Ok(output.map_or(mapped, Into::into))
}

/// Method, address and body of a request.
fn shown(request: &Request) -> String {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"method\":");
    json::write_string(request.method.as_str(), &mut out);
    out.extend_from_slice(b",\"url\":");
    json::write_string(request.url.as_str(), &mut out);
    if !request.body.is_empty() {
        out.extend_from_slice(b",\"body\":");
        match std::str::from_utf8(&request.body) {
            Ok(text) if json::check(&request.body, json::MAX_DEPTH).is_ok() => out.extend_from_slice(text.as_bytes()),
            Ok(text) => json::write_string(text, &mut out),
            Err(_) => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

impl StepTested {
    fn masked(self, samples: &Samples) -> Self {
        let request = match self.request {
            Ok(request) => Ok(request.map(|request| samples.mask(request))),
            Err(failure) => Err(Failure { message: samples.mask(failure.message), ..failure }),
        };
        Self { request, ..self }
    }
}

fn judge(outcome: Result<Outcome, Failure>, samples: &Samples, tested: Tested) -> Tested {
    match outcome {
        Ok(Outcome::Filtered) => Tested { matched: false, ..tested },
        Ok(Outcome::Mapped(output)) => {
            let text = String::from_utf8_lossy(&output).into_owned();
            Tested { output: Some(samples.mask(text)), ..tested }
        }
        Err(failure) => {
            let failure = Failure { message: samples.mask(failure.message), ..failure };
            Tested { matched: failure.field.as_deref() != Some("when"), failure: Some(failure), ..tested }
        }
    }
}

/// Errors name `field`.
pub fn check_json(field: &str, text: &str) -> Result<(), Error> {
    json::check(text.as_bytes(), json::MAX_DEPTH).map_err(|error| {
        Error::field(field, format!("line {}, column {}: {}", error.line, error.column, error.message))
    })
}
