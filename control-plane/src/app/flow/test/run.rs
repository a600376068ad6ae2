//! The run of a test: the parts of a node's run in their order, with nothing sent. Where a step has
//! no output, what reads it is not known.

mod not_known;
mod remarks;

use std::collections::BTreeSet;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderValue;
use kanat_engine::{
    AdapterRun, Admission, Calling, Input, Keys, Mask, Program, RESPONSE_BODY_LIMIT, Record,
    Request, Resources, Step, Trace, exchange, expression_reads, failure_reads, response_document,
    trigger,
};
use kanat_mapping::{Effort, json};
use kanat_model::Timestamp;
use kanat_model::message::Failure;
use kanat_proto::plan::v1::{Field, FlowPlan, Mapping};
use kanat_script::apart;

use super::TestResult;
use super::sample::{CheckedSample, StepOutput};
use crate::app::flow::samples::Samples;
use crate::app::{Call, adapter};

/// Failures of one mapping that a test tells of beside the first one.
const MAX_FAILURES: usize = 99;

/// Why a run ends before its end.
enum End {
    /// The flow's condition was false.
    Filtered,
    Failed(Failure),
    /// It goes on from the output of a step that has none.
    NotKnown,
}

struct Run<'r> {
    program: &'r Program,
    samples: &'r Samples,
    sample: &'r CheckedSample,
    calls: kanat_script::Caller<'r>,
    /// For all that the test evaluates.
    effort: Effort,
    mask: Mask,
    trace: Trace,
    now: Timestamp,
    /// Value of `source` in expressions.
    payload: Bytes,
    /// Value of `steps` in expressions.
    steps: String,
    /// Steps that would be called, and whose outputs are not given.
    not_known: BTreeSet<String>,
    output: Option<Bytes>,
    /// Failures of the mapping beside the one that a run would end with.
    others: Vec<Failure>,
    /// The condition could not be evaluated.
    has_no_condition: bool,
}

/// Returns the `context` of adapters: that of a run, with a message that there is not.
fn context(program: &Program, sample: &CheckedSample, now: Timestamp) -> String {
    let plan = program.plan();
    let trigger = std::str::from_utf8(&sample.trigger).unwrap_or("{}");
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let id = quoted(&plan.flow_id);
    let name = quoted(&plan.flow_name);
    let flow = format!(r#"{{"id":{id},"name":{name},"version":{}}}"#, plan.version);
    let message =
        format!(r#"{{"id":"msg_test","attempt":1,"trigger":"test","receivedAt":"{now}"}}"#);
    format!(r#"{{"test":true,"flow":{flow},"message":{message},"trigger":{trigger}}}"#)
}

pub(super) async fn run(
    call: &Call,
    program: &Program,
    samples: &Samples,
    sample: &CheckedSample,
    now: Timestamp,
) -> TestResult {
    let mut trace = Trace::new(1);
    trace.push(Record {
        at: now,
        ..Record::new("received", "test", "ok", 0)
    });
    let context = context(program, sample, now);
    let mut mask = samples.secrets();
    mask.add(program.literal_secrets());
    mask.add(&trigger::credentials(&sample.trigger));
    let mut run = Run {
        calls: kanat_script::Caller::new(&call.app.adapters, adapter::asker(&call.caller), context),
        effort: Effort::default(),
        payload: Bytes::copy_from_slice(sample.payload.as_bytes()),
        steps: "{}".to_owned(),
        not_known: BTreeSet::new(),
        output: None,
        others: Vec::new(),
        has_no_condition: false,
        mask,
        trace,
        program,
        samples,
        sample,
        now,
    };
    let ended = run.all().await;
    let has_no_condition = run.has_no_condition;
    let output = run
        .output
        .map(|output| String::from_utf8_lossy(&output).into_owned());
    let tested = TestResult {
        matched: true,
        output,
        failures: run.others,
        trace: run.trace.into_records(),
    };
    match ended {
        Ok(()) | Err(End::NotKnown) => tested,
        Err(End::Filtered) => TestResult {
            matched: false,
            ..tested
        },
        Err(End::Failed(failure)) => TestResult {
            matched: !has_no_condition,
            failures: [vec![failure], tested.failures].concat(),
            ..tested
        },
    }
}

impl Run<'_> {
    async fn all(&mut self) -> Result<(), End> {
        let program = self.program;
        let missing_keys = self.missing_keys().await;
        self.adapt().await?;
        self.admit().await?;
        self.trace.lacks_keys(&missing_keys);
        for step in program.steps() {
            self.step(step).await?;
        }
        let body = self.map().await?;
        self.deliver(body).await
    }

    /// Evaluates a part of the program. One that calls adapters waits for them here.
    async fn evaluate<T>(
        &mut self,
        part: impl Fn(&Program, &Input<'_>, &dyn Resources) -> T + Send + Sync,
    ) -> T {
        let program = self.program;
        let samples = self.samples;
        let steps = self.steps.as_bytes();
        let input = Input {
            payload: &self.payload,
            trigger: &self.sample.trigger,
            steps,
            now: self.now,
            mask: &self.mask,
            effort: &self.effort,
        };
        if !program.uses_adapters() {
            let evaluation = |effort: &Effort| part(program, &Input { effort, ..input }, samples);
            return apart::evaluate(&self.effort, evaluation).await;
        }
        let value = self
            .calls
            .evaluate(samples, |adapters| {
                part(program, &input, &Calling::new(samples, adapters))
            })
            .await;
        for report in self.calls.take_reports() {
            let error = report.error.as_deref();
            let adapted = AdapterRun {
                name: &report.name,
                duration: report.duration,
                report: report.to_json(),
                error,
            };
            self.trace.adapted(&adapted, &self.mask);
        }
        value
    }

    /// Returns the input of an evaluation that a run does not have, with a bound of its own.
    fn input<'i>(&'i self, effort: &'i Effort) -> Input<'i> {
        Input {
            payload: &self.payload,
            trigger: &self.sample.trigger,
            steps: self.steps.as_bytes(),
            now: self.now,
            mask: &self.mask,
            effort,
        }
    }

    /// Returns the keys of the flow that a message would come in without. The bound of the run does
    /// not count what they take.
    async fn missing_keys(&self) -> Vec<&'static str> {
        let keys = |effort: &Effort| self.program.keys(&self.input(effort), self.samples);
        let Keys {
            ordering,
            idempotency,
        } = apart::evaluate(&Effort::default(), keys).await;
        let plan = self.program.plan();
        [
            ("ordering_key", &plan.ordering_key, ordering),
            ("idempotency_key", &plan.idempotency_key, idempotency),
        ]
        .into_iter()
        .filter(|(_, expression, key)| !expression.is_empty() && key.is_none())
        .filter(|(_, expression, _)| self.not_known_of(expression_reads(expression)).is_none())
        .map(|(field, ..)| field)
        .collect()
    }

    async fn adapt(&mut self) -> Result<(), End> {
        if self.program.plan().adapter.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let body = self.sample.text();
        match self
            .evaluate(|program, input, resources| program.adapt(input, body.as_bytes(), resources))
            .await
        {
            Ok(adapted) => {
                self.payload = adapted.unwrap_or_else(|| self.payload.clone());
                Ok(())
            }
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    async fn admit(&mut self) -> Result<(), End> {
        if let Some(note) = self.not_known_of(self.program.condition_reads()) {
            self.note("validated", "when", "skipped", note);
            return Ok(());
        }
        let begun = Instant::now();
        match self.evaluate(Program::admit).await {
            Ok(Admission::Admitted { .. }) => {
                if !self.program.plan().when.is_empty() {
                    self.trace.validated("when", "ok", begun, None);
                    let effort = Effort::default();
                    let input = self.input(&effort);
                    if let Some(found) = self.program.condition_mismatch(&input, self.samples) {
                        self.note("validated", "when", "warning", found);
                    }
                }
                Ok(())
            }
            Ok(Admission::Filtered { reason }) => {
                self.trace.validated("when", "filtered", begun, reason);
                Err(End::Filtered)
            }
            Err(failure) => {
                self.has_no_condition = true;
                Err(self.refused(failure, begun))
            }
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), End> {
        let begun = Instant::now();
        let name = step.name();
        let planned = self
            .program
            .plan()
            .steps
            .iter()
            .find(|planned| planned.name == name);
        let is_missing = planned.is_some_and(|planned| planned.instance.is_empty());
        let condition = format!("{}.when", step.place());
        let is_condition_known = self.not_known_of(step.condition_reads()).is_none();
        let not_known = self.not_known_of(step.reads());
        let shown = if is_missing {
            self.not_sent("step", name, None, Some(missing()))
        } else {
            let made = self
                .evaluate(|program, input, resources| program.step_request(step, input, resources))
                .await;
            match made {
                Ok(Some(request)) => {
                    let is_known = not_known.is_none();
                    let shown = self.not_sent("step", name, Some(&request), not_known);
                    if is_known {
                        self.note_step(step).await;
                    }
                    shown
                }
                Ok(None) if is_condition_known => {
                    self.trace.skipped(name);
                    return Ok(());
                }
                Err(failure)
                    if not_known.is_none()
                        || is_condition_known && failure.field.as_deref() == Some(&condition) =>
                {
                    return Err(self.refused(failure, begun));
                }
                Ok(None) | Err(_) => self.not_sent("step", name, None, not_known),
            }
        };
        match self.sample.outputs.iter().find(|given| given.step == name) {
            Some(given) => {
                self.judge(step, given, shown).await?;
                self.keep(given);
            }
            None => {
                self.not_known.insert(name.to_owned());
            }
        }
        Ok(())
    }

    /// Judges a given output by the step's `success_when`, as the body of an answer. `shown` is the
    /// request that would be sent, where it is known.
    async fn judge(
        &mut self,
        step: &Step,
        given: &StepOutput,
        shown: Option<String>,
    ) -> Result<(), End> {
        let program = self.program;
        if program.success_when(Some(step)).is_none() {
            return Ok(());
        }
        let place = format!("{}.success_when", step.name());
        if let Some(note) = self.not_known_of(step.success_reads()) {
            self.note("step", &place, "skipped", note);
            return Ok(());
        }
        let begun = Instant::now();
        let body = Some(given.output.as_bytes()).filter(|body| body.len() <= RESPONSE_BODY_LIMIT);
        let headers = given.headers.clone().unwrap_or_default();
        let response = response_document(given.status(), &headers, body);
        let has_headers = given.headers.is_some();
        let holds = self
            .evaluate(|program, input, resources| match has_headers {
                true => program
                    .succeeds(Some(step), input, &response, resources)
                    .map(Some),
                false => program.succeeds_without_headers(step, input, &response, resources),
            })
            .await;
        let failure = match holds {
            Ok(Some(true)) => return Ok(()),
            Ok(None) => {
                let note = "response.headers is not known in a test: give stepOutputs with headers";
                self.note("step", &place, "skipped", note.to_owned());
                return Ok(());
            }
            Ok(Some(false)) => {
                let call = shown.as_deref().map(exchange::method_and_url);
                let call = call.unwrap_or_else(|| format!("step {:?}", step.name()));
                let mut refusal = program.refusal(Some(step), &call, given.status());
                if given.status.is_none() {
                    refusal.message += "; its output was given without a status, which counts as \
                                        200";
                }
                refusal
            }
            Err(failure) => failure,
        };
        Err(self.refused(failure, begun))
    }

    /// Adds the output of a step to what expressions see.
    fn keep(&mut self, given: &StepOutput) {
        let StepOutput { step, output, .. } = given;
        let status = given.status();
        let mut kept = self.steps.clone().into_bytes();
        kept.pop();
        if kept.len() > 1 {
            kept.push(b',');
        }
        json::write_string(step, &mut kept);
        kept.extend_from_slice(
            format!(":{{\"output\":{output},\"status\":{status}}}}}").as_bytes(),
        );
        self.steps = String::from_utf8_lossy(&kept).into_owned();
    }

    /// The target's body: the mapping's output, or what came in.
    async fn map(&mut self) -> Result<Bytes, End> {
        if self.program.passes_through() {
            self.output = Some(exchange::shown(&self.payload, &self.mask));
            return Ok(Bytes::from(self.sample.body()));
        }
        let begun = Instant::now();
        let mapped = match self.evaluate(Program::map).await {
            Ok(mapped) => mapped,
            Err(failure) => {
                self.others = self.failures_beside(&failure).await;
                return Err(self.refused_or_not_known(failure, begun));
            }
        };
        let mapped = match self.not_known_of(self.program.mapping_reads()) {
            Some(note) => self.map_known(note, begun).await?,
            None => {
                if self.program.plan().mapping.is_some() {
                    self.trace.mapped(begun);
                }
                self.note_mapping(self.program).await;
                mapped
            }
        };
        let adapted = self
            .evaluate(|program, _, resources| program.adapt_output(&mapped, resources))
            .await;
        match adapted {
            Ok(None) => {
                self.output = Some(exchange::shown(&mapped, &self.mask));
                Ok(mapped)
            }
            Ok(Some(output)) => {
                self.output = Some(exchange::shown(&Bytes::from(output.clone()), &self.mask));
                Ok(kanat_engine::body(output))
            }
            Err(failure) => Err(self.refused(failure, begun)),
        }
    }

    /// Maps the fields that do not read what is not known. The others would have values that no run
    /// gives, such as that of a comparison with nothing. They are left out, and the record in the
    /// trace names them before `note`.
    async fn map_known(&mut self, note: String, begun: Instant) -> Result<Bytes, End> {
        let program = self.program;
        let plan = program.plan();
        let fields = plan.mapping.iter().flat_map(|mapping| &mapping.fields);
        let (known, left_out): (Vec<_>, Vec<_>) = fields.cloned().partition(|field| {
            let single = of_fields(plan, vec![field.clone()]);
            single.is_some_and(|single| self.not_known_of(single.mapping_reads()).is_none())
        });
        let left_out: Vec<_> = left_out.into_iter().map(|field| field.name).collect();
        let note = format!("left out: {}: {note}", left_out.join(", "));
        self.note("mapped", "mapping", "warning", note);
        let Some(known) = of_fields(plan, known) else {
            return Err(End::NotKnown);
        };
        let mapped = self
            .evaluate(|_, input, resources| known.map(input, resources))
            .await;
        let mapped = mapped.map_err(|failure| self.refused(failure, begun))?;
        self.note_mapping(&known).await;
        Ok(mapped)
    }

    /// Evaluates each field of the mapping alone. Returns the failures beside the first one,
    /// without those that come from a step whose output is not given.
    async fn failures_beside(&mut self, first: &Failure) -> Vec<Failure> {
        let mut failures = Vec::new();
        for single in single_fields(self.program.plan()) {
            let mapped = self
                .evaluate(|_, input, resources| single.map(input, resources))
                .await;
            if self.effort.is_spent() || failures.len() == MAX_FAILURES {
                break;
            }
            if let Err(failure) = mapped
                && failure.field != first.field
                && self.not_known_of(failure_reads(&failure)).is_none()
            {
                let message = self.mask.apply(&failure.message).into_owned();
                failures.push(Failure { message, ..failure });
            }
        }
        failures
    }

    async fn deliver(&mut self, body: Bytes) -> Result<(), End> {
        let Some(target) = &self.program.plan().target else {
            return Ok(());
        };
        if target.instance.is_empty() {
            self.not_sent("delivery", "target", None, Some(missing()));
            return Ok(());
        }
        let begun = Instant::now();
        let made = self
            .evaluate(|program, input, resources| program.request(input, body.clone(), resources))
            .await;
        match made {
            Ok(Some(mut request)) => {
                let declared = || {
                    self.sample
                        .content_type
                        .clone()
                        .unwrap_or(HeaderValue::from_static("application/json"))
                };
                self.program.type_content(&mut request, declared);
                let reads = [self.program.mapping_reads(), self.program.target_reads()].concat();
                let note = self.not_known_of(reads);
                self.not_sent("delivery", "target", Some(&request), note);
                if self.not_known_of(self.program.target_reads()).is_none() {
                    self.note_target().await;
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(failure) => Err(self.refused_or_not_known(failure, begun)),
        }
    }

    /// Records a call that a run would make. Returns its request as the trace has it.
    fn not_sent(
        &mut self,
        stage: &'static str,
        name: &str,
        request: Option<&Request>,
        error: Option<String>,
    ) -> Option<String> {
        let request = request.map(|request| {
            let Request {
                method,
                url,
                headers,
                body,
                secrets,
                ..
            } = request;
            self.mask.add(secrets);
            exchange::request(method, url, headers, body, &self.mask)
        });
        let record = Record::new(stage, name, "skipped", 0);
        self.trace.push(Record {
            at: Timestamp::now(),
            request: request.clone(),
            error,
            ..record
        });
        request
    }

    fn note(&mut self, stage: &'static str, name: &str, status: &'static str, note: String) {
        let record = Record::new(stage, name, status, 0);
        self.trace.push(Record {
            at: Timestamp::now(),
            error: Some(note),
            ..record
        });
    }

    fn refused(&mut self, mut failure: Failure, begun: Instant) -> End {
        failure.message = self.mask.apply(&failure.message).into_owned();
        self.trace.refused(&failure, begun);
        End::Failed(failure)
    }
}

/// Compiles the mapping of a plan field by field.
fn single_fields(plan: &FlowPlan) -> impl Iterator<Item = Program> {
    let fields = plan.mapping.iter().flat_map(|mapping| &mapping.fields);
    fields.filter_map(|field| of_fields(plan, vec![field.clone()]))
}

/// Compiles some fields of the mapping of a plan.
fn of_fields(plan: &FlowPlan, fields: Vec<Field>) -> Option<Program> {
    let part = FlowPlan {
        mapping: Some(Mapping { fields }),
        target: plan.target.clone(),
        ..FlowPlan::default()
    };
    Program::compile(part).ok()
}

fn missing() -> String {
    "the connector does not exist in this environment yet: the call cannot be shown".to_owned()
}
