//! One attempt: condition, steps, mapping, request, answer, and what they come to. When the next
//! attempt is due is decided here; that it takes place is not.

mod answer;
mod call;
pub(crate) mod outputs;
mod retry;
pub(crate) mod retry_after;
mod step;
mod trace;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderValue;
use kanat_engine::{Admission, Calling, Input, Mask, Program, Resources, Trace, exchange};
use kanat_mapping::{Adapters, Effort};
use kanat_message_log::{
    CompletedMessage, DeliveryStore, Lease, NewMessage, Outcome, Settlement, TraceRecord,
};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::budget::{Budget, Reservation};
use kanat_net::outbound::{Client, Response};
use kanat_script::{Asker, Caller, Pool, Scripts, apart};

use crate::connector::Bounds;
use crate::credentials::{self, Opened};
use crate::observed::Observer;
use crate::plans::published::Answering;
use crate::plans::{Environment, Plans};
use crate::work::Work;
pub(crate) use answer::Answered;
use call::Called;
pub(crate) use call::{ended, verdict};

/// What an attempt came to, ready to be settled.
pub(crate) struct Attempt {
    pub number: u32,
    pub outcome: Outcome,
    pub output: Option<Bytes>,
    pub failure: Option<Failure>,
    pub trace: Vec<TraceRecord>,
    /// For the caller, where one waits.
    pub answered: Option<Answered>,
}

impl Attempt {
    /// The entry of a first attempt that was over before the log heard of its message.
    pub fn completed(self, message: NewMessage) -> CompletedMessage {
        let Self {
            number: _,
            outcome,
            output,
            failure,
            trace,
            answered: _,
        } = self;
        CompletedMessage {
            message,
            at: Timestamp::now(),
            outcome,
            output,
            failure,
            trace,
        }
    }

    /// The attempt's entry in the log.
    pub fn settlement(self, lease: Lease) -> Settlement {
        let Self {
            number,
            outcome,
            output,
            failure,
            trace,
            answered: _,
        } = self;
        Settlement {
            lease,
            at: Timestamp::now(),
            attempt: number,
            outcome,
            output,
            failure,
            trace,
        }
    }
}

/// What an attempt works with.
pub(crate) struct Tools<'a> {
    pub program: &'a Program,
    pub resources: &'a dyn Resources,
    /// What the resources are of, for what was sealed in it.
    pub environment: &'a Environment,
    /// The adapters of the same environment, and what runs them.
    pub scripts: &'a dyn Scripts,
    pub adapters: &'a Pool,
    pub client: &'a Client,
    /// Where another access token comes from.
    pub plans: &'a Plans,
    /// What connectors are given.
    pub bounds: &'a Bounds,
    /// For the outputs of steps.
    pub log: &'a dyn DeliveryStore,
    /// Of all messages of the node: outputs take of it.
    pub memory: &'a Arc<Budget>,
    /// For `User-Agent`.
    pub agent: &'a HeaderValue,
    /// Who is told how calls end and what they bring.
    pub observer: Observer<'a>,
    /// How to answer the caller, where one waits.
    pub answering: Option<&'a Answering>,
}

impl Tools<'_> {
    fn use_adapters(&self) -> bool {
        self.program.uses_adapters() || self.answering.is_some_and(Answering::calls_adapters)
    }
}

/// Makes one attempt; `None` when the message was found to be another's. A message without a lease
/// is not in the log yet, and has no steps.
pub(crate) async fn attempt(
    tools: &Tools<'_>,
    lease: Option<&Lease>,
    work: &mut Work,
) -> Option<Attempt> {
    let mut run = Run::begin(tools, lease, work);
    let (attempt, answered) = match run.all().await {
        Ok(()) => {
            let answered = match tools.answering {
                Some(answering) => Some(run.answer(answering).await),
                None => None,
            };
            (
                trace::end(run.trace, Outcome::Delivered, run.output, None),
                answered,
            )
        }
        Err(End::Filtered) => (
            trace::end(run.trace, Outcome::Filtered, None, None),
            Some(Answered::Filtered),
        ),
        Err(End::Failed { failure, answer }) => {
            let plan = tools.program.plan();
            let answer = answer.as_deref();
            let now = Timestamp::now();
            let steady = Timestamp::steady();
            let outcome = retry::decide(run.work, plan, &failure, answer, now, steady);
            let answered = Some(Answered::Failed(failure.kind));
            (
                trace::end(run.trace, outcome, run.output, Some(failure)),
                answered,
            )
        }
        // Who waits is told to come again: the message must not run as well.
        Err(End::Waits { .. }) if tools.answering.is_some() && run.work.steps.is_empty() => {
            let failure = Failure {
                kind: ErrorKind::Network,
                ..configuration("a connector takes no calls for now")
            };
            (
                trace::end(run.trace, Outcome::Discarded, None, Some(failure)),
                Some(Answered::NotNow),
            )
        }
        Err(End::Waits { due }) => (
            trace::given_back(run.trace, due),
            Some(Answered::Failed(ErrorKind::Network)),
        ),
        Err(End::Lost) => return None,
    };
    Some(Attempt {
        answered: answered.filter(|_| tools.answering.is_some()),
        ..attempt
    })
}

/// An attempt that something of ours broke: it fails as any other, so that the message is not lost
/// in it.
pub(crate) fn broken(work: &Work) -> Attempt {
    let failure = configuration("internal error while the message was processed");
    let answered = Some(Answered::Failed(failure.kind));
    let trace = trace::begin(work, Timestamp::now());
    Attempt {
        answered,
        ..trace::end(trace, Outcome::DeadLetter, None, Some(failure))
    }
}

/// Reason of the end of a message whose caller did not want to wait any longer.
pub(crate) const LATE: &str = "the deadline of the API was over before there was an answer";

/// The end of a message that nobody waits for any more.
pub(crate) fn late(work: &Work) -> Attempt {
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

/// An attempt under way.
struct Run<'a> {
    tools: &'a Tools<'a>,
    lease: Option<&'a Lease>,
    work: &'a mut Work,
    /// What expressions see as `source`.
    payload: Bytes,
    /// What they see as `trigger`.
    trigger: Bytes,
    /// What they see as `steps`.
    steps: Bytes,
    /// What the mapping made, as it may be shown.
    output: Option<Bytes>,
    /// What it made, as it is.
    mapped: Option<Bytes>,
    /// What the target answered, where a caller waits.
    response: Option<Response>,
    mask: Mask,
    trace: Trace,
    /// Calls adapters.
    caller: Caller<'a>,
    /// For all that this attempt evaluates.
    effort: Effort,
    /// For the outputs of this attempt's steps.
    memory: Vec<Reservation>,
}

/// How an attempt ends when it does not end well.
enum End {
    /// The flow's condition was false.
    Filtered,
    /// `answer` is that of the call that failed, where there was one.
    Failed {
        failure: Failure,
        answer: Option<Box<Response>>,
    },
    /// It cannot go on before `due`, for no fault of the message: no attempt is counted.
    Waits { due: Timestamp },
    /// The message belongs to another.
    Lost,
}

impl<'a> Run<'a> {
    fn begin(tools: &'a Tools<'a>, lease: Option<&'a Lease>, work: &'a mut Work) -> Self {
        Self {
            payload: work.payload.clone(),
            trigger: work.trigger.clone(),
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

    /// The credentials that the request came with, for a flow that reads them.
    fn open_trigger(&mut self) -> Result<(), End> {
        let opened = credentials::open(
            self.tools.program,
            self.tools.environment,
            &self.work.trigger,
        );
        let Opened { trigger, secrets } = opened
            .map_err(|error| self.refused(configuration(&error.to_string()), Instant::now()))?;
        self.mask.add(&secrets);
        self.trigger = trigger;
        self.caller
            .set_context(context(self.tools, self.work, &self.trigger));
        Ok(())
    }

    /// The payload as the flow's adapter makes it.
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

    /// Evaluates a part of the program. One that calls adapters waits for them here, and on no
    /// core; of one that calls none, a part may be evaluated twice: see [`apart::evaluate`].
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
            Ok(Admission::Filtered) => {
                self.trace.validated("when", "filtered", begun, None);
                Err(End::Filtered)
            }
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    /// The target's body: the mapping's output, or what came in.
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
            self.mapped = self.tools.answering.map(|_| mapped.clone());
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

    /// A flow without a target ends before this.
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
        let called = Called::target(&key);
        // In a box: most of what an attempt would take up is for this, and attempts are moved about
        // before they begin.
        let response = Box::pin(self.call(request, &called)).await?;
        self.response = self.tools.answering.map(|_| response);
        Ok(())
    }

    /// A failure before anything was sent.
    fn refused(&mut self, mut failure: Failure, begun: Instant) -> End {
        failure.message = self.mask.apply(&failure.message).into_owned();
        self.trace.refused(&failure, begun);
        End::Failed {
            failure,
            answer: None,
        }
    }
}

/// For whom adapters run.
fn asker<'a>(tools: &'a Tools<'_>) -> Asker<'a> {
    Asker {
        environment: tools.observer.environment.as_str(),
        key: &tools.program.plan().flow_id,
    }
}

/// What adapters get beside their input.
fn context(tools: &Tools<'_>, work: &Work, trigger: &[u8]) -> String {
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
        text(work.source.as_str()),
        work.received_at,
        trigger,
    )
}

fn configuration(message: &str) -> Failure {
    Failure {
        kind: ErrorKind::Configuration,
        message: message.to_owned(),
        field: None,
        expression: None,
    }
}

/// Hides the secrets of every instance that the flow speaks to.
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
