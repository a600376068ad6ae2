//! One call of an attempt, to the target or for a step: sent once, traced and classified.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, header};
use kanat_catalog::{Action, Instance};
use kanat_engine::{Exchange, Request, Resources, Step, exchange};
use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::outbound::{self, Response};
use kanat_telemetry::metrics;
use kanat_telemetry::spans::{Kind, Span};

use super::response::{seen, shown};
use super::{End, Run, outputs};
use crate::connector::{self, CallPermit, Unavailable};
use crate::observed::CallResult;
use crate::plans::RenewalOutcome;
use crate::trace_context;

/// Names of a call in the trace and in its headers.
pub(super) struct CallSpec<'c> {
    /// Stage in the trace, and name of the span.
    stage: &'static str,
    name: &'c str,
    /// Value of `Idempotency-Key`: equal in every attempt, different for every call of a message.
    key: &'c str,
    step: Option<&'c Step>,
    failpoint: &'static str,
}

impl<'c> CallSpec<'c> {
    pub fn target(key: &'c str) -> Self {
        Self {
            stage: "delivery",
            name: "target",
            key,
            step: None,
            failpoint: "delivery.answered",
        }
    }

    pub fn step(step: &'c Step, key: &'c str) -> Self {
        Self {
            stage: "step",
            name: step.name(),
            key,
            step: Some(step),
            failpoint: "step.answered",
        }
    }
}

impl Run<'_> {
    /// Sends a request, and repeats it with a renewed access token where the token was refused.
    /// Returns a 2xx answer.
    ///
    /// # Errors
    /// Any other answer, or none, is a failure.
    pub(super) async fn call(
        &mut self,
        request: Request,
        spec: &CallSpec<'_>,
    ) -> Result<Response, End> {
        let known = self.tools.resources.instance(&request.instance);
        let Some(instance) = known.filter(|instance| is_renewable(instance)) else {
            return self.call_once(request, spec, known).await;
        };
        let mut again = repeated(&request);
        match self.call_once(request, spec, Some(instance)).await {
            Err(End::Failed {
                failure,
                answer: Some(answer),
            }) if answer.status == 401 => {
                match self
                    .tools
                    .plans
                    .wait_for_renewed_token(self.tools.observer.environment, instance)
                    .await
                {
                    RenewalOutcome::Token(environment) => {
                        // An instance that was removed has no credentials to call with.
                        let Some(instance) = environment.instance(instance.id()) else {
                            return Err(End::Failed {
                                failure,
                                answer: Some(answer),
                            });
                        };
                        self.mask.add(instance.secrets());
                        instance.apply_auth(&mut again.url, &mut again.headers);
                        self.call_once(again, spec, Some(instance)).await
                    }
                    RenewalOutcome::Late => {
                        let message = format!("{}; no new access token has come", failure.message);
                        let failure = Failure {
                            kind: ErrorKind::Credentials,
                            message,
                            ..failure
                        };
                        Err(End::Failed {
                            failure,
                            answer: Some(answer),
                        })
                    }
                    RenewalOutcome::Never => Err(End::Failed {
                        failure,
                        answer: Some(answer),
                    }),
                }
            }
            ended => ended,
        }
    }

    /// Waits for the turn of the call, then sends it. An instance that does not exist any more has
    /// no limits.
    async fn call_once(
        &mut self,
        mut request: Request,
        spec: &CallSpec<'_>,
        known: Option<&Instance>,
    ) -> Result<Response, End> {
        let pass = match known {
            Some(instance) => Some(self.acquire(instance).await?),
            None => None,
        };
        let context = self.work.traceparent.as_deref();
        let child = trace_context::child(context, &self.work.id);
        complete(&mut request, spec.key, &child, self.tools.agent);
        if let Some(Ok(state)) = context
            .and_then(trace_context::state)
            .map(HeaderValue::from_str)
        {
            request.headers.insert("tracestate", state);
        }
        let Request {
            method,
            url,
            headers,
            body,
            timeout,
            instance,
            secrets,
        } = request;
        self.mask.add(&secrets);
        let action = match spec.step {
            Some(step) => Some(step.action()),
            None => known.and_then(|instance| instance.action_with_rule(method.as_str(), &url)),
        };
        let sent = exchange::request(&method, &url, &headers, &body, &self.mask);
        let span = self.span(spec, &headers).map(|span| {
            // The path is the user's, and may hold secrets.
            let span = span.with("http.request.method", method.as_str());
            span.with("server.address", url.host_str().unwrap_or_default())
        });
        let begun = (Timestamp::now(), Instant::now());
        let answer = self
            .tools
            .client
            .send(outbound::Request {
                method,
                url,
                headers,
                body,
                timeout,
            })
            .await;
        kanat_failpoint::hit(spec.failpoint);
        metrics().attempt.observe(begun.1.elapsed());
        let outcome = breaker_outcome(answer.as_ref().map(|answer| answer.status));
        let pause = pass.and_then(|pass| pass.record(outcome));
        let failure = match self.judge(&answer, spec, action, &sent) {
            None => self.judge_success(&answer, spec, &sent).await,
            failure => failure,
        };
        self.observe(&instance, &answer, spec, failure.as_ref());
        if let Some(pause) = pause {
            self.tools.observer.paused(&instance, pause);
        }
        let error = failure.as_ref().map(|failure| failure.message.clone());
        if let Some(span) = span {
            span.end(error.clone());
        }
        let response = answer.as_ref().ok().map(|answer| shown(answer, &self.mask));
        let stage = spec.stage;
        let name = spec.name;
        self.trace.exchange(Exchange {
            stage,
            name,
            begun,
            request: sent,
            response,
            error,
        });
        match (answer, failure) {
            (Ok(answer), None) => Ok(answer),
            (answer, Some(failure)) => Err(End::Failed {
                failure,
                answer: answer.ok().map(Box::new),
            }),
            (Err(error), None) => Err(End::Failed {
                failure: super::configuration(&error.to_string()),
                answer: None,
            }),
        }
    }

    /// Returns the right to call an instance, once its turn has come. A message whose flow is
    /// paused while it waits, or whose instance is changed, goes back to the log: its request is
    /// made of what was.
    async fn acquire(&self, instance: &Instance) -> Result<CallPermit, End> {
        let outdated = async {
            let mut replaced = self.tools.plans.subscribe();
            while !self.is_outdated(instance) {
                if replaced.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let entered = tokio::select! {
            biased;
            entered = self.tools.connectors.acquire(instance) => entered,
            () = outdated => Err(Unavailable(Duration::ZERO)),
        };
        entered.map_err(|Unavailable(wait)| End::Waits {
            due: Timestamp::steady().after(wait),
        })
    }

    /// Returns whether the flow is paused by now, or `instance` another one than before.
    fn is_outdated(&self, instance: &Instance) -> bool {
        let snapshot = self.tools.plans.load();
        let flow = snapshot.flow(&FlowId::from(self.tools.program.plan().flow_id.as_str()));
        let environment = snapshot.environment(self.tools.observer.environment);
        let current = environment.and_then(|environment| environment.instance(instance.id()));
        flow.is_some_and(|flow| flow.paused)
            || current.is_some_and(|current| current.config_json() != instance.config_json())
    }

    /// Reports the result of the call, and the answer to a step.
    fn observe(
        &self,
        instance: &str,
        answer: &Result<Response, outbound::Error>,
        spec: &CallSpec<'_>,
        failure: Option<&Failure>,
    ) {
        let Some(result) = call_result(answer.as_ref().map(|answer| answer.status)) else {
            return;
        };
        self.tools.observer.called(instance, result);
        if let (CallResult::Failure, Some(failure)) = (result, failure) {
            self.tools.observer.failed(instance, &failure.message);
        }
        if let (Some(step), Ok(answer), Some(known)) =
            (spec.step, answer, self.tools.resources.instance(instance))
            && (200..300).contains(&answer.status)
            && !answer.truncated
        {
            self.tools
                .observer
                .answered(instance, &step.endpoint(known), &answer.body, &self.mask);
        }
    }

    /// Begins the span of the call, under the `traceparent` that is sent.
    fn span(&self, spec: &CallSpec<'_>, headers: &HeaderMap) -> Option<Span> {
        let own = headers.get("traceparent")?.to_str().ok()?;
        Span::begin(
            spec.stage,
            Kind::Client,
            own,
            self.work.traceparent.as_deref().map(trace_context::parent),
        )
    }

    /// Returns the failure of a call whose successful answer does not satisfy the `success_when` of
    /// the definition, or cannot be judged by it. `shown` is the request as the trace has it.
    async fn judge_success(
        &mut self,
        answer: &Result<Response, outbound::Error>,
        spec: &CallSpec<'_>,
        shown: &str,
    ) -> Option<Failure> {
        let program = self.tools.program;
        let step = spec.step;
        let answer = answer.as_ref().ok()?;
        program.success_when(step)?;
        self.mask.add(&exchange::sensitive_values(&answer.headers));
        let response = outputs::response(answer);
        let holds = self
            .evaluate(|program, input, resources| {
                program.succeeds(step, input, &response, resources)
            })
            .await;
        let call = exchange::method_and_url(shown);
        let mut failure = match holds {
            Ok(true) => return None,
            Ok(false) => program.refusal(step, &call, answer.status),
            Err(failure) => failure,
        };
        failure.message = self.mask.apply(&failure.message).into_owned();
        Some(failure)
    }

    /// Returns the failure of a call; `None` for a 2xx answer that `action` does not consider a
    /// refusal. `shown` is the request as the trace has it.
    fn judge(
        &self,
        answer: &Result<Response, outbound::Error>,
        spec: &CallSpec<'_>,
        action: Option<&Action>,
        shown: &str,
    ) -> Option<Failure> {
        let kind = match answer {
            Ok(answer) if (200..300).contains(&answer.status) => {
                action.and_then(|action| action.refusal(&answer.body))?;
                ErrorKind::TargetRefused
            }
            Ok(_) => ErrorKind::Status,
            Err(outbound::Error::Network(_)) => ErrorKind::Network,
            Err(outbound::Error::Tls(_)) => ErrorKind::Tls,
            Err(outbound::Error::Timeout(_)) => ErrorKind::Timeout,
            Err(outbound::Error::Egress(_)) => ErrorKind::Egress,
        };
        let call = exchange::method_and_url(shown);
        let message = match answer {
            Ok(answer) => format!(
                "{call} answered {}",
                exchange::beginning(&seen(answer), &self.mask)
            ),
            Err(error) => format!("{call}: {}", self.mask.apply(&error.to_string())),
        };
        Some(Failure {
            kind,
            message,
            field: spec.step.map(Step::place),
            expression: None,
        })
    }
}

/// Returns whether a refused access token may be replaced by another.
fn is_renewable(instance: &Instance) -> bool {
    instance.access_token().is_some_and(|token| token.renewable)
}

/// Copies a request to send it again.
fn repeated(request: &Request) -> Request {
    Request {
        url: request.url.clone(),
        method: request.method.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        timeout: request.timeout,
        instance: request.instance.clone(),
        secrets: request.secrets.clone(),
    }
}

/// Returns the result of a call for the circuit breaker of its connector.
pub(crate) fn breaker_outcome(status: Result<u16, &outbound::Error>) -> connector::Outcome {
    match status {
        Ok(500..=599) => connector::Outcome::Failure,
        Ok(429) | Err(outbound::Error::Egress(_)) => connector::Outcome::Unknown,
        Ok(_) => connector::Outcome::Success,
        Err(
            outbound::Error::Network(_) | outbound::Error::Tls(_) | outbound::Error::Timeout(_),
        ) => connector::Outcome::Failure,
    }
}

/// Returns the result of a call as far as the other side is responsible; `None` when that is
/// unknown, as for a call that was never sent.
pub(crate) fn call_result(status: Result<u16, &outbound::Error>) -> Option<CallResult> {
    match status {
        Ok(401 | 403 | 500..=599) => Some(CallResult::Failure),
        Ok(429) | Err(outbound::Error::Egress(_)) => None,
        Ok(_) => Some(CallResult::Success),
        Err(
            outbound::Error::Network(_) | outbound::Error::Tls(_) | outbound::Error::Timeout(_),
        ) => Some(CallResult::Failure),
    }
}

/// Adds the headers that every call carries. A header that the flow sets takes precedence.
fn complete(request: &mut Request, key: &str, child: &str, agent: &HeaderValue) {
    let headers = &mut request.headers;
    headers
        .entry(header::USER_AGENT)
        .or_insert_with(|| agent.clone());
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.entry("idempotency-key").or_insert(key);
    }
    if let Ok(child) = HeaderValue::from_str(child) {
        headers.insert("traceparent", child);
    }
}
