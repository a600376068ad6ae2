//! `/webhooks/receive/<token>`: finds the flow, authenticates the sender, and answers once the
//! message is durable.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use kanat_engine::form::{self, FormError};
use kanat_engine::trigger;
use kanat_message_log::key;
use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use kanat_model::message::Trigger as Source;
use kanat_net::body::IncomingBody;
use kanat_net::{Body, body as bodies};
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{Verify, Webhook};
use kanat_telemetry::spans::{self, Span};
use sha2::{Digest, Sha256};

use super::receive;
use super::verify::{self, Credentials, Inbound, Refusal as Unproved, Verification};
use crate::context::NodeContext;
use crate::error::Refusal;
use crate::pipeline::{Acceptance, Arrival};
use crate::plans::{CompiledFlow, Runnable};
use crate::trace_context;
use crate::{credentials, payload};

/// Answers a request to the webhook of `token`.
pub(crate) async fn receive<B: IncomingBody>(
    shared: &NodeContext,
    token: &str,
    request: Request<B>,
) -> Result<Response<Body>, Refusal> {
    let flow = find(shared, token)?;
    let known = Arc::clone(&flow.flow);
    take(shared, flow, request)
        .await
        .inspect_err(|refusal| log_refusal(shared, &known, refusal))
}

/// Logs that a webhook was refused. Only the reason of a failed authentication is logged verbatim:
/// other reasons may quote the request.
fn log_refusal(shared: &NodeContext, flow: &CompiledFlow, refusal: &Refusal) {
    let status = refusal.status();
    let reason = match status {
        StatusCode::UNAUTHORIZED => refusal.message(),
        StatusCode::BAD_REQUEST => "the request or its body cannot be read",
        StatusCode::PAYLOAD_TOO_LARGE => "the body is too large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the encoding of the body is not taken",
        _ => return,
    };
    let Some(count) = shared
        .refusals
        .count(&flow.id, reason, tokio::time::Instant::now())
    else {
        return;
    };
    let name = flow.plan().flow_name.as_str();
    tracing::warn!(
        flow.id = %flow.id,
        flow.name = name,
        status = status.as_u16(),
        count,
        "webhook refused: {reason}",
    );
}

/// Answers a request to the webhook of a flow.
async fn take<B: IncomingBody>(
    shared: &NodeContext,
    flow: Runnable,
    request: Request<B>,
) -> Result<Response<Body>, Refusal> {
    let begun = Instant::now();
    let webhook = webhook(&flow);
    let verify = webhook.and_then(|webhook| webhook.verify.as_ref());
    let (parts, incoming) = request.into_parts();
    match parts.method {
        Method::POST => {}
        Method::GET if is_meta(verify) => return challenge(&flow, verify, &parts),
        _ if is_meta(verify) => return Err(Refusal::method("GET, POST")),
        _ => return Err(Refusal::method("POST")),
    }
    receive::bound_headers(&parts.headers)?;
    shared
        .pipeline
        .admits(&flow.flow)
        .map_err(receive::overloaded)?;
    let (body, _room) = receive::read(shared, &flow.flow.id, &parts, incoming).await?;
    let now = Timestamp::now();
    let verified = verify
        .map(|verify| prove(&flow, verify, &parts, &body, now))
        .transpose()?;
    if verify.is_some_and(|verify| verify.scheme == "slack")
        && let Some(challenge) = verify::url_verification(&body)
    {
        return Ok(text(challenge));
    }
    let arrival = arrive(flow.clone(), verify, verified, &parts, body, now)?;
    let span = span(&flow, &arrival, &parts.headers);
    let accepted = shared.pipeline.accept(flow, arrival).await;
    if let Some(span) = span {
        span.end(accepted.as_ref().err().map(ToString::to_string));
    }
    match accepted {
        Ok(accepted) => {
            kanat_failpoint::hit("accept.before_answer");
            kanat_telemetry::metrics().ack.observe(begun.elapsed());
            Ok(answer(&accepted))
        }
        Err(reason) => Err(receive::not_stored(&reason)),
    }
}

fn find(shared: &NodeContext, token: &str) -> Result<Runnable, Refusal> {
    let snapshot = shared.plans.load();
    let sha256: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    let found = snapshot
        .webhook(&sha256, Timestamp::now())
        .map(|flow| snapshot.runnable(flow));
    match found
        .transpose()
        .map_err(|error| receive::not_ready(&error))?
        .flatten()
    {
        Some(runnable) => Ok(runnable),
        None if shared.plans.is_complete() => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "no deployed flow has this webhook address",
        )),
        // The flow may be one that this node has not received yet.
        None => Err(Refusal::no_plans()),
    }
}

fn webhook(runnable: &Runnable) -> Option<&Webhook> {
    match runnable.flow.plan().trigger.as_ref()?.kind.as_ref()? {
        Kind::Webhook(webhook) => Some(webhook),
        Kind::Manual(_) | Kind::Schedule(_) | Kind::Poll(_) | Kind::Api(_) => None,
    }
}

fn is_meta(verify: Option<&Verify>) -> bool {
    verify.is_some_and(|verify| verify.scheme == "meta")
}

fn shared_secrets(runnable: &Runnable, verify: &Verify, now: Timestamp) -> Credentials {
    use kanat_engine::Resources;
    let instance = runnable
        .environment
        .instance(&runnable.flow.plan().source_instance);
    Credentials::resolve(verify, instance, runnable.environment.variables(), now)
}

fn prove(
    runnable: &Runnable,
    verify: &Verify,
    parts: &Parts,
    body: &[u8],
    now: Timestamp,
) -> Result<Verification, Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let inbound = Inbound {
        headers: &parts.headers,
        query,
        body,
        now,
    };
    verify::check(verify, &shared_secrets(runnable, verify, now), &inbound)
        .map_err(|unproved| unauthenticated(verify, &unproved))
}

fn unauthenticated(verify: &Verify, unproved: &Unproved) -> Refusal {
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, unproved.to_string());
    if verify.scheme == "basic" {
        refusal.with(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"webhook\""),
        )
    } else {
        refusal
    }
}

fn challenge(
    runnable: &Runnable,
    verify: Option<&Verify>,
    parts: &Parts,
) -> Result<Response<Body>, Refusal> {
    let Some(verify) = verify else {
        return Err(Refusal::method("POST"));
    };
    let credentials = shared_secrets(runnable, verify, Timestamp::now());
    verify::challenge(&credentials, parts.uri.query().unwrap_or_default())
        .map(text)
        .map_err(|unproved| unauthenticated(verify, &unproved))
}

/// Builds the message of a request before it is stored.
fn arrive(
    runnable: Runnable,
    verify: Option<&Verify>,
    verified: Option<Verification>,
    parts: &Parts,
    raw_body: Bytes,
    at: Timestamp,
) -> Result<Arrival, Refusal> {
    let bad_request =
        |error: payload::PayloadError| Refusal::new(StatusCode::BAD_REQUEST, error.to_string());
    let content_type = parts
        .headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or("unreadable"));
    let payload = payload::payload(content_type, &raw_body).map_err(bad_request)?;
    let query = form::members(parts.uri.query().unwrap_or_default().as_bytes())
        .map_err(|error: FormError| bad_request(error.into()))?;
    let received = trigger::InboundRequest {
        method: &parts.method,
        headers: &parts.headers,
        query,
        at,
        verify,
        path_params: b"{}",
        members: b"",
    };
    let document = credentials::document(&runnable, &received);
    let id = MessageId::generate();
    let keys = runnable.keys(payload.as_ref().unwrap_or(&raw_body), &document.seen, at);
    let mut dedupe = Vec::new();
    // Keys of the flow and of the scheme have different namespaces.
    if let Some(key) = keys.idempotency {
        dedupe.push(key::idempotency(document.key(key)));
    }
    if let Some(Verification {
        delivery: Some(delivery),
        window,
    }) = verified
    {
        dedupe.push(key::delivery(delivery, window));
    }
    let traceparent = trace_context::accept(&parts.headers, &id);
    Ok(Arrival {
        id,
        trigger_kind: Source::Webhook,
        raw_body,
        payload,
        ordering_key: keys.ordering.map(|key| key::ordering(document.key(key))),
        trigger_document: document.kept,
        at,
        dedupe,
        traceparent: Some(traceparent),
    })
}

/// Begins the span of the append, as a child of the sender's span.
fn span(runnable: &Runnable, arrival: &Arrival, headers: &HeaderMap) -> Option<Span> {
    let own = arrival.traceparent.as_deref().map(trace_context::parent)?;
    let caller = trace_context::caller(headers);
    let span = Span::begin("webhook", spans::Kind::Server, own, caller)?;
    Some(
        span.with("kanat.message.id", arrival.id.as_str())
            .with("kanat.flow.id", runnable.flow.id.as_str()),
    )
}

/// Returns 202 with the id of the message.
pub(crate) fn answer(accepted: &Acceptance) -> Response<Body> {
    let (id, status) = match accepted {
        Acceptance::New(id) => (id, "accepted"),
        Acceptance::Duplicate(id) => (id, "duplicate"),
    };
    let mut response = Response::new(bodies::full(format!(
        "{{\"messageId\":\"{id}\",\"status\":\"{status}\"}}"
    )));
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(bodies::full(text));
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
