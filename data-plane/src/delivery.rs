//! One attempt: condition, mapping, request, answer, and what they come to. When the next attempt is due is decided here;
//! that it takes place is not.

mod exchange;
mod mask;
mod retry;
mod retry_after;
mod trace;

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, header};
use kanat_engine::{Input, Outcome as Mapped, Program, Request, Resources};
use kanat_message_log::{Lease, Outcome, Settlement, TraceRecord};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::outbound::{self, Client, Response};
use kanat_telemetry::metrics;
use kanat_telemetry::spans::{Kind, Span};

use crate::trace_context;
use crate::work::Work;
use mask::Mask;
use trace::Trace;

/// What an attempt came to, ready to be settled.
pub(crate) struct Attempt {
    pub number: u32,
    pub outcome: Outcome,
    pub output: Option<Bytes>,
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
}

impl Attempt {
    /// The attempt's entry in the log.
    pub fn settlement(self, lease: Lease) -> Settlement {
        let Self { number, outcome, output, failure, trace } = self;
        Settlement { lease, at: Timestamp::now(), attempt: number, outcome, output, failure, trace }
    }
}

/// What is to be sent, and what its trace needs.
pub(crate) struct Prepared {
    request: Request,
    output: Option<Bytes>,
    trace: Trace,
    mask: Mask,
}

/// Applies condition and mapping, and builds the request. `Err` is an attempt that ended here.
pub(crate) fn prepare(
    work: &Work,
    program: &Program,
    resources: &impl Resources,
    agent: &HeaderValue,
) -> Result<Prepared, Box<Attempt>> {
    let now = Timestamp::now();
    let mask = mask(program, resources);
    let mut trace = Trace::begin(work, program, now);
    let input = Input { payload: &work.payload, trigger: &work.trigger, steps: &work.steps, now };
    let begun = Instant::now();
    let mapped = match supported(program).and_then(|()| program.run(&input, resources)) {
        Ok(Mapped::Filtered) => return Err(Box::new(filtered(trace, begun))),
        Ok(Mapped::Mapped(body)) => body,
        Err(failure) => return Err(Box::new(refused(work, program, trace, &mask, failure, begun))),
    };
    let maps = program.plan().mapping.is_some();
    let output = maps.then(|| mask.apply_to_bytes(&mapped));
    let body = if maps { mapped } else { work.raw_body.clone() };
    trace.mapped(program, begun);
    let request = program.request(&input, body, resources);
    match request.and_then(|request| request.ok_or_else(|| configuration("the flow has no target"))) {
        Ok(mut request) => {
            complete(&mut request, work, program, agent);
            Ok(Prepared { request, output, trace, mask })
        }
        Err(failure) => {
            let mut attempt = refused(work, program, trace, &mask, failure, begun);
            attempt.output = output;
            Err(Box::new(attempt))
        }
    }
}

/// Sends what was prepared, once.
pub(crate) async fn send(prepared: Prepared, work: &Work, program: &Program, client: &Client) -> Attempt {
    let Prepared { request, output, mut trace, mask } = prepared;
    let shown = exchange::request(&request.method, &request.url, &request.headers, &request.body, &mask);
    let begun = (Timestamp::now(), Instant::now());
    let span = span(&request, work);
    let Request { method, url, headers, body, timeout, .. } = request;
    kanat_failpoint::hit("run.mapped");
    let answer = client.send(outbound::Request { method, url, headers, body, timeout }).await;
    kanat_failpoint::hit("delivery.answered");
    metrics().attempt.observe(begun.1.elapsed());
    let failure = judge(&answer, &mask);
    if let Some(span) = span {
        span.end(failure.as_ref().map(|failure| failure.message.clone()));
    }
    let answer = answer.ok();
    let response = answer.as_ref().map(|answer| exchange::response(answer, &mask));
    trace.delivery(begun, shown, response, failure.as_ref().map(|failure| failure.message.clone()));
    match failure {
        None => trace.end(Outcome::Delivered, output, None),
        Some(failure) => {
            let outcome = retry::decide(work, program.plan(), &failure, answer.as_ref(), Timestamp::now());
            trace.end(outcome, output, Some(failure))
        }
    }
}

/// The call to the target, under the `traceparent` that the target is told. The path is the user's, and may hold secrets.
fn span(request: &Request, work: &Work) -> Option<Span> {
    let own = request.headers.get("traceparent")?.to_str().ok()?;
    let span = Span::begin("delivery", Kind::Client, own, work.traceparent.as_deref())?;
    let span = span.with("http.request.method", request.method.as_str());
    Some(span.with("server.address", request.url.host_str().unwrap_or_default()))
}

/// An attempt that something of ours broke: it fails as any other, so that the message is not lost in it.
pub(crate) fn broken(work: &Work, program: &Program) -> Attempt {
    let failure = configuration("internal error while the message was processed");
    Trace::begin(work, program, Timestamp::now()).end(Outcome::DeadLetter, None, Some(failure))
}

/// Steps and adapters of a plan are run by later builds; a plan that has them is never sent to this one.
fn supported(program: &Program) -> Result<(), Failure> {
    let plan = program.plan();
    if plan.steps.is_empty() && plan.adapter.is_empty() {
        return Ok(());
    }
    Err(configuration("this build of the node does not run flows with steps or adapters"))
}

fn configuration(message: &str) -> Failure {
    Failure { kind: ErrorKind::Configuration, message: message.to_owned(), field: None, expression: None }
}

fn mask(program: &Program, resources: &impl Resources) -> Mask {
    let plan = program.plan();
    let target = plan.target.as_ref().map(|target| target.instance.as_str());
    let instances = [Some(plan.source_instance.as_str()), target];
    let secrets = instances.into_iter().flatten().filter_map(|id| resources.instance(id)).flat_map(|i| i.secrets());
    Mask::new(secrets)
}

/// What every request to a target carries; what the flow itself sets stands.
fn complete(request: &mut Request, work: &Work, program: &Program, agent: &HeaderValue) {
    let child = trace_context::child(work.traceparent.as_deref(), &work.id);
    let headers = &mut request.headers;
    if request.body.is_empty() {
        headers.remove(header::CONTENT_TYPE);
    } else if program.plan().mapping.is_none() && !sets_content_type(program) {
        // What goes out as it came keeps the type that it came with.
        headers.insert(header::CONTENT_TYPE, work.content_type());
    }
    headers.entry(header::USER_AGENT).or_insert_with(|| agent.clone());
    if let Ok(id) = HeaderValue::from_str(work.id.as_str()) {
        headers.entry("idempotency-key").or_insert(id);
    }
    if let Ok(child) = HeaderValue::from_str(&child) {
        headers.insert("traceparent", child);
    }
}

fn sets_content_type(program: &Program) -> bool {
    let headers = program.plan().target.iter().flat_map(|target| &target.headers);
    headers.into_iter().any(|header| header.name.eq_ignore_ascii_case(header::CONTENT_TYPE.as_str()))
}

fn filtered(mut trace: Trace, begun: Instant) -> Attempt {
    trace.validated("when", "filtered", begun, None);
    trace.end(Outcome::Filtered, None, None)
}

fn refused(
    work: &Work,
    program: &Program,
    mut trace: Trace,
    mask: &Mask,
    mut failure: Failure,
    begun: Instant,
) -> Attempt {
    failure.message = mask.apply(&failure.message).into_owned();
    trace.refused(&failure, begun);
    let outcome = retry::decide(work, program.plan(), &failure, None, Timestamp::now());
    trace.end(outcome, None, Some(failure))
}

/// Why an answer, or the want of one, is a failed attempt; `None` for 2xx.
fn judge(answer: &Result<Response, outbound::Error>, mask: &Mask) -> Option<Failure> {
    let (kind, message) = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => return None,
        Ok(answer) => (ErrorKind::Status, format!("the target answered {}", answer.status)),
        Err(error @ outbound::Error::Network(_)) => (ErrorKind::Network, error.to_string()),
        Err(error @ outbound::Error::Timeout(_)) => (ErrorKind::Timeout, error.to_string()),
        Err(error @ outbound::Error::Egress(_)) => (ErrorKind::Egress, error.to_string()),
    };
    Some(Failure { kind, message: mask.apply(&message).into_owned(), field: None, expression: None })
}
