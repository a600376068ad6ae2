//! The records of one attempt, in the order of its stages.

use std::time::Instant;

use bytes::Bytes;
use kanat_message_log::{Outcome, TraceRecord};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_script::Report;

use super::Attempt;
use super::mask::Mask;
use crate::work::Work;

pub(super) struct Trace {
    attempt: u32,
    begun: Timestamp,
    records: Vec<TraceRecord>,
}

impl Trace {
    /// Begins with the record that the message came in, when this is its first attempt.
    pub fn begin(work: &Work, now: Timestamp) -> Self {
        let mut trace = Self { attempt: work.attempt(), begun: now, records: Vec::with_capacity(4) };
        // A message that has outputs of steps was taken up before.
        if work.attempts == 0 && work.steps.is_empty() {
            let waited = millis(now.since(work.received_at).as_millis());
            trace.push(Record { at: work.received_at, ..Record::new("received", work.source.as_str(), "ok", waited) });
            if let Some(noted) = work.noted() {
                let record = Record::new("validated", "requestSchema", "warning", 0);
                trace.push(Record { at: work.received_at, error: Some(noted), ..record });
            }
        }
        trace
    }

    /// The condition of a flow that has one.
    pub fn validated(&mut self, name: &str, status: &'static str, begun: Instant, error: Option<String>) {
        let record = Record::new("validated", name, status, since(begun));
        self.push(Record { at: self.begun, error, ..record });
    }

    pub fn mapped(&mut self, begun: Instant) {
        self.push(Record { at: Timestamp::now(), ..Record::new("mapped", "mapping", "ok", since(begun)) });
    }

    /// What an adapter did: its console, and why it failed.
    pub fn adapted(&mut self, report: &Report, mask: &Mask) {
        let status = if report.error.is_some() { "failed" } else { "ok" };
        let record = Record::new("adapted", &report.name, status, millis(report.duration.as_millis()));
        let response = Some(mask.apply(&report.to_json()).into_owned());
        let error = report.error.as_deref().map(|error| mask.apply(error).into_owned());
        self.push(Record { at: Timestamp::now(), response, error, ..record });
    }

    /// A step whose condition was false.
    pub fn skipped(&mut self, step: &str) {
        self.push(Record { at: Timestamp::now(), ..Record::new("step", step, "skipped", 0) });
    }

    /// What failed after its call was recorded.
    pub fn failed(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "failed", 0);
        self.push(Record { at: Timestamp::now(), error: Some(error), ..record });
    }

    /// What is not as it should be, and goes on all the same.
    pub fn warned(&mut self, stage: &'static str, name: &str, error: String) {
        let record = Record::new(stage, name, "warning", 0);
        self.push(Record { at: Timestamp::now(), error: Some(error), ..record });
    }

    /// What ended the attempt before anything was sent.
    pub fn refused(&mut self, failure: &Failure, begun: Instant) {
        let error = Some(failure.message.clone());
        // A field of the mapping may be called `adapter` too: it has an expression.
        let adapter = failure.field.as_deref() == Some("adapter") && failure.expression.is_none();
        let (stage, name) = match (failure.kind, failure.field.as_deref()) {
            // What the flow's own adapter did is recorded already, unless there is none.
            (ErrorKind::Adapter | ErrorKind::Timeout, _) if adapter => return,
            (_, _) if adapter => ("adapted", "adapter".to_owned()),
            (ErrorKind::Mapping | ErrorKind::Adapter, Some(field @ ("when" | "ordering_key" | "idempotency_key"))) => {
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
        self.push(Record { at: self.begun, error, ..record });
    }

    /// What a caller was answered.
    pub fn answered(&mut self, begun: Instant, response: String) {
        let record = Record::new("answered", "response", "ok", since(begun));
        self.push(Record { at: Timestamp::now(), response: Some(response), ..record });
    }

    /// A call, to the target or by a step.
    pub fn exchange(
        &mut self,
        stage: &'static str,
        name: &str,
        begun: (Timestamp, Instant),
        request: String,
        response: Option<String>,
        error: Option<String>,
    ) {
        let status = if error.is_some() { "failed" } else { "ok" };
        let record = Record::new(stage, name, status, since(begun.1));
        self.push(Record { at: begun.0, request: Some(request), response, error, ..record });
    }

    /// Adds what comes next, and closes the attempt.
    pub fn end(mut self, outcome: Outcome, output: Option<Bytes>, failure: Option<Failure>) -> Attempt {
        let at = Timestamp::now();
        let error = failure.as_ref().map(|failure| failure.message.clone());
        match &outcome {
            Outcome::Retry { due } => {
                let response = Some(format!("{{\"due\":\"{due}\"}}"));
                let record = Record::new("retry_scheduled", "on_error", "ok", 0);
                self.push(Record { at, response, error, ..record });
            }
            Outcome::DeadLetter => {
                self.push(Record { at, error, ..Record::new("dead_lettered", "on_error", "failed", 0) });
            }
            Outcome::Discarded => {
                self.push(Record { at, error, ..Record::new("discarded", "api", "failed", 0) });
            }
            Outcome::Delivered | Outcome::Filtered | Outcome::Release { .. } => {}
        }
        Attempt { number: self.attempt, outcome, output, failure, trace: self.records, answered: None }
    }

    /// The message goes back as it is: no attempt is counted, and only what steps did is worth a record.
    pub fn given_back(self, due: Timestamp) -> Attempt {
        let stepped = self.records.iter().any(|record| record.stage == "step");
        let trace = if stepped { self.records } else { Vec::new() };
        let outcome = Outcome::Release { due };
        Attempt { number: self.attempt, outcome, output: None, failure: None, trace, answered: None }
    }

    fn push(&mut self, record: Record<'_>) {
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

struct Record<'a> {
    at: Timestamp,
    stage: &'static str,
    name: &'a str,
    status: &'static str,
    duration_ms: u32,
    request: Option<String>,
    response: Option<String>,
    error: Option<String>,
}

impl<'a> Record<'a> {
    fn new(stage: &'static str, name: &'a str, status: &'static str, duration_ms: u32) -> Self {
        let at = Timestamp::from_millis(0);
        Self { at, stage, name, status, duration_ms, request: None, response: None, error: None }
    }
}

fn since(begun: Instant) -> u32 {
    millis(begun.elapsed().as_millis())
}

fn millis(millis: u128) -> u32 {
    u32::try_from(millis).unwrap_or(u32::MAX)
}
