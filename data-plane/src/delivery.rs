//! One attempt at a message: condition, steps, mapping, request, response and outcome. It decides
//! when the next attempt is due; scheduling it belongs to the pipeline.

mod call;
pub(crate) mod outputs;
mod response;
mod retry;
pub(crate) mod retry_after;
mod step;
pub(crate) mod trace;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderValue;
use kanat_engine::{Admission, Calling, Input, Mask, Program, Resources, Trace, exchange};
use kanat_mapping::{Adapters, Effort};
use kanat_message_log::{
    AttemptedMessage, DeliveryStore, Lease, NewMessage, Outcome, Settlement, TraceRecord,
};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::budget::{Budget, Reservation};
use kanat_net::outbound::{Client, Response};
use kanat_script::{Asker, Caller, Pool, Scripts, apart};

use crate::connector::Connectors;
use crate::credentials::{self, OpenTrigger};
use crate::observed::Observer;
use crate::payload;
use crate::plans::published::ResponseMapping;
use crate::plans::{Environment, Plans};
use crate::work::MessageInMemory;
use call::CallSpec;
pub(crate) use call::{breaker_outcome, call_result};
pub(crate) use response::CallOutcome;

/// Result of an attempt, ready to be settled.
pub(crate) struct Attempt {
    pub number: u32,
    pub outcome: Outcome,
    pub output: Option<Bytes>,
    /// Also set for a message that was delivered, and whose response does not fit its API.
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
    /// Outcome for the caller, if one waits.
    pub call_outcome: Option<CallOutcome>,
}

impl Attempt {
    /// Converts a first attempt that ended before its message was in the log.
    pub fn with_message(self, message: NewMessage) -> AttemptedMessage {
        AttemptedMessage {
            message,
            at: Timestamp::now(),
            outcome: self.outcome,
            output: self.output,
            failure: self.failure,
            trace: self.trace,
        }
    }

    /// Converts the attempt to its settlement in the log.
    pub fn settlement(self, lease: Lease) -> Settlement {
        Settlement {
            lease,
            at: Timestamp::now(),
            attempt: self.number,
            outcome: self.outcome,
            output: self.output,
            failure: self.failure,
            trace: self.trace,
        }
    }
}

/// Resources of an attempt.
pub(crate) struct Tools<'a> {
    pub program: &'a Program,
    pub resources: &'a dyn Resources,
    /// Environment of the resources, which opens what was sealed in it.
    pub environment: &'a Environment,
    /// Adapters of the environment.
    pub scripts: &'a dyn Scripts,
    pub adapters: &'a Pool,
    pub client: &'a Client,
    /// Source of renewed access tokens.
    pub plans: &'a Plans,
    /// Limits of the connectors.
    pub connectors: &'a Connectors,
    /// Log that keeps the outputs of steps.
    pub log: &'a dyn DeliveryStore,
    /// Memory budget of all messages of the node. Outputs of steps take of it.
    pub memory: &'a Arc<Budget>,
    /// Value of `User-Agent`.
    pub agent: &'a HeaderValue,
    /// Observer of the calls and their answers.
    pub observer: Observer<'a>,
    /// Mapping of the response, if a caller waits.
    pub response_mapping: Option<&'a ResponseMapping>,
}

impl Tools<'_> {
    fn use_adapters(&self) -> bool {
        self.program.uses_adapters()
            || self
                .response_mapping
                .is_some_and(ResponseMapping::calls_adapters)
    }
}

/// Makes one attempt. Returns `None` when the message turns out to belong to another node. A
/// message without a lease is not in the log yet, and has no steps.
pub(crate) async fn attempt(
    tools: &Tools<'_>,
    lease: Option<&Lease>,
    work: &mut MessageInMemory,
) -> Option<Attempt> {
    let mut run = Run::begin(tools, lease, work);
    let (attempt, call_outcome) = match run.all().await {
        Ok(()) => {
            let (call_outcome, failure) = match tools.response_mapping {
                Some(response_mapping) => match run.answer(response_mapping).await {
                    Ok(response) => (Some(CallOutcome::Response(response)), None),
                    Err(failure) => (Some(CallOutcome::InvalidResponse), Some(failure)),
                },
                None => (None, None),
            };
            (
                trace::end(run.trace, Outcome::Delivered, run.output, failure),
                call_outcome,
            )
        }
        Err(End::Filtered) => (
            trace::end(run.trace, Outcome::Filtered, None, None),
            Some(CallOutcome::Filtered),
        ),
        Err(End::Failed { failure, answer }) => {
            let plan = tools.program.plan();
            let answer = answer.as_deref();
            let now = Timestamp::now();
            let steady = Timestamp::steady();
            let outcome = retry::decide(run.work, plan, &failure, answer, now, steady);
            let call_outcome = Some(CallOutcome::Failed(failure.kind));
            (
                trace::end(run.trace, outcome, run.output, Some(failure)),
                call_outcome,
            )
        }
        // The caller may try again: the message must not run as well.
        Err(End::Waits { .. }) if tools.response_mapping.is_some() && run.work.steps.is_empty() => {
            let failure = Failure {
                kind: ErrorKind::Network,
                ..configuration("a connector takes no calls for now")
            };
            (
                trace::end(run.trace, Outcome::Discarded, None, Some(failure)),
                Some(CallOutcome::Unavailable),
            )
        }
        Err(End::Waits { due }) => (
            trace::given_back(run.trace, due),
            Some(CallOutcome::Failed(ErrorKind::Network)),
        ),
        Err(End::Lost) => return None,
    };
    Some(Attempt {
        call_outcome: call_outcome.filter(|_| tools.response_mapping.is_some()),
        ..attempt
    })
}

/// Returns the result of an attempt that an internal error ended: it fails like any other, so that
/// the message is not lost.
pub(crate) fn broken(work: &MessageInMemory) -> Attempt {
    let failure = configuration("internal error while the message was processed");
    let call_outcome = Some(CallOutcome::Failed(failure.kind));
    let trace = trace::begin(work, Timestamp::now());
    Attempt {
        call_outcome,
        ..trace::end(trace, Outcome::DeadLetter, None, Some(failure))
    }
}

/// Error of a message that was discarded because the deadline of its caller passed while it ran.
const LATE: &str = "the deadline of the API was over before there was an answer";

/// Returns the result of an attempt whose caller no longer waits.
pub(crate) fn late(work: &MessageInMemory) -> Attempt {
    let failure = Failure {
        kind: ErrorKind::Timeout,
        ..configuration(LATE)
    };
    trace::end(
        trace::begin(work, Timestamp::now()),
        Outcome::Discarded,
        None,
        Some(failure),
    )
}

/// An attempt in progress.
struct Run<'a> {
    tools: &'a Tools<'a>,
    lease: Option<&'a Lease>,
    work: &'a mut MessageInMemory,
    /// Value of `source` in expressions.
    payload: Bytes,
    /// Value of `trigger` in expressions.
    trigger: Bytes,
    /// Value of `steps` in expressions.
    steps: Bytes,
    /// Output of the mapping, with secrets masked.
    output: Option<Bytes>,
    /// Output of the mapping.
    mapped: Option<Bytes>,
    /// Answer of the target, if a caller waits.
    response: Option<Response>,
    mask: Mask,
    trace: Trace,
    /// Calls adapters.
    caller: Caller<'a>,
    /// Evaluation budget of this attempt.
    effort: Effort,
    /// Reservations for the outputs of the steps.
    memory: Vec<Reservation>,
}

/// Reason why an attempt ends before its delivery.
enum End {
    /// The flow's condition was false.
    Filtered,
    /// `answer` is the answer of the failed call, if there was one.
    Failed {
        failure: Failure,
        answer: Option<Box<Response>>,
    },
    /// The attempt cannot continue before `due` through no fault of the message. No attempt is
    /// counted.
    Waits { due: Timestamp },
    /// The message belongs to another node.
    Lost,
}

impl<'a> Run<'a> {
    fn begin(
        tools: &'a Tools<'a>,
        lease: Option<&'a Lease>,
        work: &'a mut MessageInMemory,
    ) -> Self {
        Self {
            payload: work.payload.clone(),
            trigger: work.trigger_document.clone(),
            steps: outputs::document(&work.steps),
            output: None,
            mapped: None,
            response: None,
            mask: mask(tools),
            trace: trace::begin(work, Timestamp::now()),
            caller: Caller::new(tools.adapters, asker(tools), String::new()),
            effort: Effort::default(),
            memory: Vec::new(),
            tools,
            lease,
            work,
        }
    }

    async fn all(&mut self) -> Result<(), End> {
        let program = self.tools.program;
        self.open_trigger()?;
        self.adapt().await?;
        self.admit().await?;
        for step in program.steps() {
            self.step(step).await?;
        }
        let body = self.map().await?;
        self.deliver(body).await
    }

    /// Opens the credentials of the request, for a flow that reads them.
    fn open_trigger(&mut self) -> Result<(), End> {
        let opened = credentials::open(
            self.tools.program,
            self.tools.environment,
            &self.work.trigger_document,
        );
        let OpenTrigger { trigger, secrets } = opened
            .map_err(|error| self.refused(configuration(&error.to_string()), Instant::now()))?;
        self.mask.add(&secrets);
        self.trigger = trigger;
        self.caller
            .set_context(context(self.tools, self.work, &self.trigger));
        Ok(())
    }

    /// Replaces the payload by the output of the flow's adapter.
    async fn adapt(&mut self) -> Result<(), End> {
        if self.tools.program.plan().adapter.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let raw_body = self.work.raw_body.clone();
        match self
            .evaluate(|program, input, resources| program.adapt(input, &raw_body, resources))
            .await
        {
            Ok(adapted) => {
                self.payload = adapted.unwrap_or_else(|| self.payload.clone());
                Ok(())
            }
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    /// Evaluates a part of the program. A part that calls adapters waits for them without blocking
    /// a thread. Any other part may be evaluated twice: see [`apart::evaluate`].
    async fn evaluate<T>(
        &mut self,
        part: impl Fn(&Program, &Input<'_>, &dyn Resources) -> T + Send + Sync,
    ) -> T {
        let Tools {
            program,
            resources,
            scripts,
            ..
        } = *self.tools;
        let input = Input {
            payload: &self.payload,
            trigger: &self.trigger,
            steps: &self.steps,
            now: Timestamp::now(),
            mask: &self.mask,
            effort: &self.effort,
        };
        if !self.tools.use_adapters() {
            let evaluation = |effort: &Effort| part(program, &Input { effort, ..input }, resources);
            return apart::evaluate(&self.effort, evaluation).await;
        }
        let evaluate =
            |adapters: &dyn Adapters| part(program, &input, &Calling::new(resources, adapters));
        let value = self.caller.evaluate(scripts, evaluate).await;
        trace::adapted(&mut self.trace, &self.caller.take_reports(), &self.mask);
        value
    }

    async fn admit(&mut self) -> Result<(), End> {
        let begun = Instant::now();
        match self.evaluate(Program::admit).await {
            Ok(Admission::Admitted { missing_keys }) => {
                if !self.tools.program.plan().when.is_empty() {
                    self.trace.validated("when", "ok", begun, None);
                }
                if self.trace.attempt() == 1 {
                    self.trace.lacks_keys(&missing_keys);
                }
                Ok(())
            }
            Ok(Admission::Filtered { reason }) => {
                let note = self.note_on_form().map(str::to_owned).or(reason);
                self.trace.validated("when", "filtered", begun, note);
                Err(End::Filtered)
            }
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    /// Returns the body for the target: the output of the mapping, or the body that came in.
    async fn map(&mut self) -> Result<Bytes, End> {
        let plan = self.tools.program.plan();
        if plan.mapping.is_none() && plan.adapter.is_empty() {
            return Ok(self.work.raw_body.clone());
        }
        let begun = Instant::now();
        let mapped = match self.evaluate(Program::map).await {
            Ok(mapped) => mapped,
            Err(failure) => return Err(self.refused(failure, begun)),
        };
        self.output = Some(exchange::shown(&mapped, &self.mask));
        if plan.mapping.is_some() {
            self.trace.mapped(begun);
            self.mapped = self.tools.response_mapping.map(|_| mapped.clone());
        }
        if plan.adapter.is_empty() {
            return Ok(mapped);
        }
        match self
            .evaluate(|program, _, resources| program.adapt_output(&mapped, resources))
            .await
        {
            Ok(output) => Ok(output.map_or(mapped, kanat_engine::body)),
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    /// Sends the request to the target, if the flow has one.
    async fn deliver(&mut self, body: Bytes) -> Result<(), End> {
        let begun = Instant::now();
        let request = self
            .evaluate(|program, input, resources| program.request(input, body.clone(), resources))
            .await;
        let mut request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(failure) => return Err(self.refused(failure, begun)),
        };
        self.tools
            .program
            .type_content(&mut request, || self.work.content_type());
        kanat_failpoint::hit("run.mapped");
        let key = self.work.id.to_string();
        let spec = CallSpec::target(&key);
        // Boxed, because attempts are moved before they begin and this future is the largest part.
        let response = Box::pin(self.call(request, &spec)).await?;
        self.response = self.tools.response_mapping.map(|_| response);
        Ok(())
    }

    /// Returns advice on a payload that an expression cannot have been written for.
    fn note_on_form(&self) -> Option<&'static str> {
        let content_type = || Some(self.work.content_type());
        payload::is_json_sent_as_form(&self.work.payload, content_type)
            .then_some(payload::JSON_SENT_AS_FORM)
    }

    /// Records a failure before anything was sent.
    fn refused(&mut self, mut failure: Failure, begun: Instant) -> End {
        failure.message = self.mask.apply(&failure.message).into_owned();
        let is_of_payload = matches!(failure.kind, ErrorKind::Mapping | ErrorKind::Adapter);
        if let Some(note) = self.note_on_form().filter(|_| is_of_payload) {
            failure.message = format!("{}; {note}", failure.message);
        }
        self.trace.refused(&failure, begun);
        End::Failed {
            failure,
            answer: None,
        }
    }
}

/// Returns the flow for which adapters run.
fn asker<'a>(tools: &'a Tools<'_>) -> Asker<'a> {
    Asker {
        environment: tools.observer.environment.as_str(),
        key: &tools.program.plan().flow_id,
    }
}

/// Returns the context that adapters get beside their input.
fn context(tools: &Tools<'_>, work: &MessageInMemory, trigger: &[u8]) -> String {
    if !tools.use_adapters() {
        return String::new();
    }
    let plan = tools.program.plan();
    let text = |text: &str| {
        let mut quoted = Vec::new();
        kanat_mapping::json::write_string(text, &mut quoted);
        String::from_utf8(quoted).unwrap_or_default()
    };
    let trigger = std::str::from_utf8(trigger)
        .ok()
        .filter(|trigger| !trigger.is_empty())
        .unwrap_or("{}");
    format!(
        concat!(
            r#"{{"flow":{{"id":{},"name":{},"version":{}}},"#,
            r#""message":{{"id":{},"attempt":{},"trigger":{},"receivedAt":"{}"}},"#,
            r#""trigger":{}}}"#
        ),
        text(&plan.flow_id),
        text(&plan.flow_name),
        plan.version,
        text(work.id.as_str()),
        work.attempt(),
        text(work.trigger_kind.as_str()),
        work.received_at,
        trigger,
    )
}

fn configuration(message: &str) -> Failure {
    Failure::new(ErrorKind::Configuration, message)
}

/// Returns the mask of the secrets of every instance that the flow calls.
fn mask(tools: &Tools) -> Mask {
    let plan = tools.program.plan();
    let target = plan.target.iter().map(|target| target.instance.as_str());
    let steps = plan.steps.iter().map(|step| step.instance.as_str());
    let mut instances: Vec<&str> = target
        .chain(steps)
        .chain([plan.source_instance.as_str()])
        .collect();
    instances.sort_unstable();
    instances.dedup();
    let secrets = instances
        .into_iter()
        .filter_map(|id| tools.resources.instance(id))
        .flat_map(|i| i.secrets());
    Mask::new(secrets.chain(tools.program.literal_secrets()))
}
