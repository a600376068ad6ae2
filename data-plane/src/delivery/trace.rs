//! Begin and end of the trace of an attempt.

use bytes::Bytes;
use http::HeaderMap;
use kanat_engine::exchange::{self, Extent, ResponseView};
use kanat_engine::{AdapterRun, Mask, Record, Trace};
use kanat_message_log::{Outcome, Step, TraceRecord};
use kanat_model::message::Failure;
use kanat_model::{Timestamp, saturated};
use kanat_script::Report;

use super::Attempt;
use crate::work::MessageInMemory;

/// Begins a trace. A first attempt has a record that the message was received.
pub(super) fn begin(work: &MessageInMemory, now: Timestamp) -> Trace {
    let mut trace = Trace::new(work.attempt());
    // A message that has outputs of steps was processed before.
    if work.attempts == 0 && work.steps.is_empty() {
        let waited = saturated(now.since(work.received_at).as_millis());
        trace.push(Record {
            at: work.received_at,
            ..Record::new("received", work.trigger_kind.as_str(), "ok", waited)
        });
        if let Some(noted) = work.noted() {
            let record = Record::new("validated", "requestSchema", "warning", 0);
            trace.push(Record {
                at: work.received_at,
                error: Some(noted),
                ..record
            });
        }
    }
    trace
}

/// Adds a step that is not called again. The records of its call are those of an earlier attempt,
/// unless the process died during the first one: then this record has what was answered.
pub(super) fn kept(trace: &mut Trace, work: &MessageInMemory, step: &Step, mask: &Mask) {
    let body: &[u8] = if work.attempts == 0 {
        &step.output
    } else {
        b""
    };
    let answered = ResponseView {
        status: u16::try_from(step.status).unwrap_or_default(),
        headers: &HeaderMap::new(),
        body,
        extent: Extent::Whole,
    };
    trace.kept(&step.name, exchange::response(&answered, mask));
}

/// Returns a trace of one record.
pub(crate) fn single(attempt: u32, record: Record<'_>) -> Vec<TraceRecord> {
    let mut trace = Trace::new(attempt);
    trace.push(record);
    trace.into_records()
}

/// Adds the runs of adapters.
pub(super) fn adapted(trace: &mut Trace, reports: &[Report], mask: &Mask) {
    for report in reports {
        let error = report.error.as_deref();
        let adapted = AdapterRun {
            name: &report.name,
            duration: report.duration,
            report: report.to_json(),
            error,
        };
        trace.adapted(&adapted, mask);
    }
}

/// Adds the record of the outcome, and ends the attempt.
pub(super) fn end(
    mut trace: Trace,
    outcome: Outcome,
    output: Option<Bytes>,
    failure: Option<Failure>,
) -> Attempt {
    let at = Timestamp::now();
    let error = failure.as_ref().map(|failure| failure.message.clone());
    match &outcome {
        Outcome::Retry { due } => {
            let response = Some(format!("{{\"due\":\"{}\"}}", due.to_wall()));
            let record = Record::new("retry_scheduled", "on_error", "ok", 0);
            trace.push(Record {
                at,
                response,
                error,
                ..record
            });
        }
        Outcome::DeadLetter => {
            trace.push(Record {
                at,
                error,
                ..Record::new("dead_lettered", "on_error", "failed", 0)
            });
        }
        Outcome::Discarded => {
            trace.push(Record {
                at,
                error,
                ..Record::new("discarded", "api", "failed", 0)
            });
        }
        Outcome::Delivered
        | Outcome::Filtered
        | Outcome::Release { .. }
        | Outcome::Yield
        | Outcome::Hold { .. } => {}
    }
    let number = trace.attempt();
    Attempt {
        number,
        outcome,
        output,
        failure,
        trace: trace.into_records(),
        call_outcome: None,
    }
}

/// Ends an attempt whose message goes back unchanged: no attempt is counted, and only steps are
/// recorded.
pub(super) fn given_back(trace: Trace, due: Timestamp) -> Attempt {
    let number = trace.attempt();
    let trace = if trace.has_steps() {
        trace.into_records()
    } else {
        Vec::new()
    };
    Attempt {
        number,
        outcome: Outcome::Release { due },
        output: None,
        failure: None,
        trace,
        call_outcome: None,
    }
}
