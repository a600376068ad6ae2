//! The records of one attempt, in the order of its stages. What is written about its end is the
//! log's.

use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::trace::TraceRecord;

use crate::Mask;

/// The trace of one attempt of a message, or of a test.
#[derive(Debug)]
pub struct Trace {
    attempt: u32,
    begun: Timestamp,
    records: Vec<TraceRecord>,
}

/// What the calls of one adapter came to.
#[derive(Debug)]
pub struct Adapted<'a> {
    pub name: &'a str,
    pub duration: Duration,
    /// JSON: its version, the number of calls, its console.
    pub report: String,
    /// Why the last call failed.
    pub error: Option<&'a str>,
}

/// One call, to the target or by a step.
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
    pub fn new(attempt: u32, begun: Timestamp) -> Self {
        Self {
            attempt,
            begun,
            records: Vec::with_capacity(4),
        }
    }

    /// The number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether a step of this attempt was called, skipped or refused.
    pub fn has_steps(&self) -> bool {
        self.records.iter().any(|record| record.stage == "step")
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
        self.push(Record {
            at: self.begun,
            error,
            ..record
        });
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
        self.push(Record {
            at: Timestamp::now(),
            ..Record::new("mapped", "mapping", "ok", since(begun))
        });
    }

    /// Adds what an adapter did: its console, and why it failed.
    pub fn adapted(&mut self, adapter: &Adapted<'_>, mask: &Mask) {
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
            at: Timestamp::now(),
            response,
            error,
            ..record
        });
    }

    /// Adds a step whose condition was false.
    pub fn skipped(&mut self, step: &str) {
        self.push(Record {
            at: Timestamp::now(),
            ..Record::new("step", step, "skipped", 0)
        });
    }

    /// Adds what failed after its call was recorded.
    pub fn failed(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "failed", 0);
        self.push(Record {
            at: Timestamp::now(),
            error: Some(error),
            ..record
        });
    }

    /// Adds what is not as it should be and does not end the attempt.
    pub fn warned(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "warning", 0);
        self.push(Record {
            at: Timestamp::now(),
            error: Some(error),
            ..record
        });
    }

    /// Adds what ended the attempt before anything was sent.
    pub fn refused(&mut self, failure: &Failure, begun: Instant) {
        let error = Some(failure.message.clone());
        // A field of the mapping may be called `adapter` too: it has an expression.
        let adapter = failure.field.as_deref() == Some("adapter") && failure.expression.is_none();
        let (stage, name) = match (failure.kind, failure.field.as_deref()) {
            // What the flow's own adapter did is recorded already, unless there is none.
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
        self.push(Record {
            at: self.begun,
            error,
            ..record
        });
    }

    /// Adds what a caller was answered, as JSON.
    pub fn answered(&mut self, begun: Instant, response: String) {
        let record = Record::new("answered", "response", "ok", since(begun));
        self.push(Record {
            at: Timestamp::now(),
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

/// The step's name in `steps.<name>...`.
fn step(field: &str) -> &str {
    field.split('.').nth(1).unwrap_or(field)
}

/// A record that is to be added; its attempt is the trace's.
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
        let at = Timestamp::from_millis(0);
        Self {
            at,
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
