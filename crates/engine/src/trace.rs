//! Trace of an attempt: its records in the order of the stages. The record of the outcome belongs
//! to the log.

use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::trace::TraceRecord;

use crate::Mask;

/// Status of a step whose output is that of an earlier attempt.
const KEPT: &str = "kept";

/// Trace of one attempt of a message or a test.
#[derive(Debug)]
pub struct Trace {
    attempt: u32,
    records: Vec<TraceRecord>,
}

/// Summary of the calls of one adapter.
#[derive(Debug)]
pub struct AdapterRun<'a> {
    pub name: &'a str,
    pub duration: Duration,
    /// JSON of the version, the number of calls and the console output.
    pub report: String,
    /// Error of the last call.
    pub error: Option<&'a str>,
}

/// One call, to the target or for a step.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// `step` or `delivery`.
    pub stage: &'static str,
    pub name: &'a str,
    pub begun: (Timestamp, Instant),
    /// JSON.
    pub request: String,
    /// JSON; `None` when there was no answer.
    pub response: Option<String>,
    pub error: Option<String>,
}

impl Trace {
    /// Begins an empty trace of an attempt, by its number.
    pub fn new(attempt: u32) -> Self {
        Self {
            attempt,
            records: Vec::with_capacity(4),
        }
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns whether a step of this attempt was called, skipped or refused.
    pub fn has_steps(&self) -> bool {
        self.records
            .iter()
            .any(|record| record.stage == "step" && record.status != KEPT)
    }

    /// Returns the records in the order of the stages.
    pub fn into_records(self) -> Vec<TraceRecord> {
        self.records
    }

    /// Adds the condition of a flow that has one, or a key.
    pub fn validated(
        &mut self,
        name: &str,
        status: &'static str,
        begun: Instant,
        error: Option<String>,
    ) {
        let record = Record::new("validated", name, status, since(begun));
        self.push(Record { error, ..record });
    }

    /// Adds a warning for each key of the flow that the message lacks.
    pub fn lacks_keys(&mut self, fields: &[&'static str]) {
        for field in fields {
            let effect = match *field {
                "ordering_key" => "it is delivered in no order",
                _ => "its repeats are not recognised",
            };
            let message = format!(
                "the expression gives nothing (undefined, null or an empty text): the message has \
                 no {field}, and {effect}"
            );
            self.warned("validated", field, message);
        }
    }

    /// Adds that the mapping gave an output.
    pub fn mapped(&mut self, begun: Instant) {
        self.push(Record::new("mapped", "mapping", "ok", since(begun)));
    }

    /// Adds the run of an adapter: its console output and its error.
    pub fn adapted(&mut self, adapter: &AdapterRun<'_>, mask: &Mask) {
        let status = if adapter.error.is_some() {
            "failed"
        } else {
            "ok"
        };
        let record = Record::new(
            "adapted",
            adapter.name,
            status,
            millis(adapter.duration.as_millis()),
        );
        let response = Some(mask.apply(&adapter.report).into_owned());
        let error = adapter.error.map(|error| mask.apply(error).into_owned());
        self.push(Record {
            response,
            error,
            ..record
        });
    }

    /// Adds a step whose condition was false.
    pub fn skipped(&mut self, step: &str) {
        self.push(Record::new("step", step, "skipped", 0));
    }

    /// Adds a step that is not called again, because an earlier attempt kept its output. `response`
    /// is JSON.
    pub fn kept(&mut self, step: &str, response: String) {
        self.push(Record {
            at: Timestamp::now(),
            response: Some(response),
            ..Record::new("step", step, KEPT, 0)
        });
    }

    /// Adds a failure after a recorded call.
    pub fn failed(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "failed", 0);
        self.push(Record {
            error: Some(error),
            ..record
        });
    }

    /// Adds a warning, which does not end the attempt.
    pub fn warned(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "warning", 0);
        self.push(Record {
            error: Some(error),
            ..record
        });
    }

    /// Adds a failure that ended the attempt before anything was sent.
    pub fn refused(&mut self, failure: &Failure, begun: Instant) {
        let error = Some(failure.message.clone());
        // A field of the mapping may be called `adapter` too: it has an expression.
        let adapter = failure.field.as_deref() == Some("adapter") && failure.expression.is_none();
        let (stage, name) = match (failure.kind, failure.field.as_deref()) {
            // The run of the flow's own adapter is already recorded, if there was one.
            (ErrorKind::Adapter | ErrorKind::Timeout, _) if adapter => return,
            (_, _) if adapter => ("adapted", "adapter".to_owned()),
            (
                ErrorKind::Mapping | ErrorKind::Adapter,
                Some(field @ ("when" | "ordering_key" | "idempotency_key")),
            ) => {
                return self.validated(field, "failed", begun, error);
            }
            (_, Some(field)) if field.starts_with("steps.") => ("step", step(field).to_owned()),
            (ErrorKind::Mapping | ErrorKind::Adapter | ErrorKind::Timeout, Some(field))
                if !field.starts_with("target.") =>
            {
                ("mapped", field.to_owned())
            }
            (_, field) => ("delivery", field.unwrap_or("request").to_owned()),
        };
        let record = Record::new(stage, &name, "failed", since(begun));
        self.push(Record { error, ..record });
    }

    /// Adds the response to a caller, as JSON.
    pub fn answered(&mut self, begun: Instant, response: String) {
        let record = Record::new("answered", "response", "ok", since(begun));
        self.push(Record {
            response: Some(response),
            ..record
        });
    }

    /// Adds a call.
    pub fn exchange(&mut self, exchange: Exchange<'_>) {
        let Exchange {
            stage,
            name,
            begun,
            request,
            response,
            error,
        } = exchange;
        let status = if error.is_some() { "failed" } else { "ok" };
        let record = Record::new(stage, name, status, since(begun.1));
        self.push(Record {
            at: begun.0,
            request: Some(request),
            response,
            error,
            ..record
        });
    }

    /// Adds a record.
    pub fn push(&mut self, record: Record<'_>) {
        self.records.push(TraceRecord {
            at: record.at,
            stage: record.stage.to_owned(),
            name: record.name.to_owned(),
            status: record.status.to_owned(),
            duration_ms: record.duration_ms,
            request: record.request,
            response: record.response,
            error: record.error,
            attempt: self.attempt,
        });
    }
}

/// Returns the name of the step in `steps.<name>...`.
fn step(field: &str) -> &str {
    field.split('.').nth(1).unwrap_or(field)
}

/// Record to add; its attempt is the trace's.
#[derive(Debug)]
pub struct Record<'a> {
    pub at: Timestamp,
    pub stage: &'static str,
    pub name: &'a str,
    pub status: &'static str,
    pub duration_ms: u32,
    /// JSON.
    pub request: Option<String>,
    /// JSON.
    pub response: Option<String>,
    pub error: Option<String>,
}

impl<'a> Record<'a> {
    /// Returns a record of the year 1970 with neither request, response nor error.
    pub fn new(stage: &'static str, name: &'a str, status: &'static str, duration_ms: u32) -> Self {
        Self {
            at: Timestamp::now(),
            stage,
            name,
            status,
            duration_ms,
            request: None,
            response: None,
            error: None,
        }
    }
}

fn since(begun: Instant) -> u32 {
    millis(begun.elapsed().as_millis())
}

fn millis(millis: u128) -> u32 {
    u32::try_from(millis).unwrap_or(u32::MAX)
}
