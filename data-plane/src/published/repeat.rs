//! Repeats of a call under one `Idempotency-Key`: they get the first response again. Another call
//! under the same key is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use kanat_catalog::MASK;
use kanat_engine::exchange;
use kanat_message_log::{Tenant, TraceRecord};
use kanat_model::id::MessageId;
use kanat_model::message::{ErrorKind, Status};
use kanat_net::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wait;
use crate::context::NodeContext;
use crate::error::Refusal;
use crate::ingress::{receive, webhook};
use crate::pipeline::Acceptance;
use crate::plans::CompiledFlow;

/// Identity of a call, by which a repeat is recognised.
pub(crate) struct CallIdentity {
    pub idempotency_key: String,
    pub raw_body: Bytes,
    /// Value of `trigger`, which contains path and query.
    pub trigger: Bytes,
}

/// Answers an asynchronous call whose message exists already as `first`.
pub(crate) async fn answer(
    shared: &NodeContext,
    flow: &CompiledFlow,
    sent: Option<CallIdentity>,
    first: MessageId,
) -> Result<Response<Body>, Refusal> {
    if is_repeat(shared, flow, sent, &first).await? {
        Ok(replayed(webhook::answer(&Acceptance::New(first))))
    } else {
        Ok(webhook::answer(&Acceptance::Duplicate(first)))
    }
}

/// Answers a synchronous call with the first response, which is recorded with its message.
pub(crate) async fn answer_of_run(
    shared: &NodeContext,
    flow: &CompiledFlow,
    sent: Option<CallIdentity>,
    first: MessageId,
) -> Result<Response<Body>, Refusal> {
    if !is_repeat(shared, flow, sent, &first).await? {
        return answer_of_known(shared, flow, first).await;
    }
    let (message, trace) = shared
        .pipeline
        .message(&tenant(flow), &first)
        .await
        .map_err(|error| receive::not_read(&error))?;
    let failed = message
        .as_ref()
        .and_then(|message| message.error.as_ref())
        .map(|error| error.kind);
    match message.map(|message| message.status) {
        Some(Status::Delivered) => {
            match (trace.iter().rev().find_map(RecordedResponse::read), failed) {
                (Some(given), _) => Ok(replayed(given)),
                // What was delivered has an error where its answer did not fit.
                (None, Some(kind)) => Err(failed_again(kind, &first)),
                (None, None) => Err(conflict(
                    "the first call under this Idempotency-Key was carried out, and its answer is \
                     not kept",
                )
                .with_members(wait::member(&first))),
            }
        }
        Some(Status::Filtered) => Ok(replayed(wait::filtered())),
        Some(Status::DeadLetter | Status::Retrying | Status::Discarded) => Err(failed_again(
            failed.unwrap_or(ErrorKind::Configuration),
            &first,
        )),
        Some(Status::Received | Status::Processing | Status::Held) | None => {
            let refusal =
                conflict("the message of the first call under this Idempotency-Key has not ended");
            let refusal = refusal.with_members(wait::member(&first));
            Err(refusal.with(header::RETRY_AFTER, HeaderValue::from_static("1")))
        }
    }
}

/// Answers a synchronous call that the flow knows by its own key. A 202 promises the delivery of
/// the first message, so that a first one that was given up is an error.
async fn answer_of_known(
    shared: &NodeContext,
    flow: &CompiledFlow,
    first: MessageId,
) -> Result<Response<Body>, Refusal> {
    let found = shared.pipeline.message(&tenant(flow), &first).await;
    let (message, _) = found.map_err(|error| receive::not_read(&error))?;
    match message.map(|message| message.status) {
        Some(status @ (Status::DeadLetter | Status::Discarded)) => {
            Err(wait::given_up(status, &first))
        }
        Some(
            Status::Received
            | Status::Processing
            | Status::Retrying
            | Status::Held
            | Status::Delivered
            | Status::Filtered,
        )
        | None => Ok(webhook::answer(&Acceptance::Duplicate(first))),
    }
}

/// Returns whether `first` is the message of the same call.
///
/// # Errors
/// It is the message of another call under the same key.
async fn is_repeat(
    shared: &NodeContext,
    flow: &CompiledFlow,
    sent: Option<CallIdentity>,
    first: &MessageId,
) -> Result<bool, Refusal> {
    let Some(sent) = sent else { return Ok(false) };
    let content = shared
        .pipeline
        .content(&tenant(flow), first)
        .await
        .map_err(|error| receive::not_read(&error))?;
    let Some(content) = content else {
        return Ok(false);
    };
    match (
        RecordedRequest::read(&content.request),
        RecordedRequest::read(&sent.trigger),
    ) {
        // The message may have been recognised by the flow's own key, or be reduced to a key by
        // now.
        (Some(first), Some(asked))
            if first.headers.idempotency_key.as_ref() == Some(&sent.idempotency_key) =>
        {
            if content.raw_body == sent.raw_body && first.is_at(&asked) {
                Ok(true)
            } else {
                Err(conflict(
                    "this Idempotency-Key came with another request before",
                ))
            }
        }
        _ => Ok(false),
    }
}

fn tenant(flow: &CompiledFlow) -> Tenant {
    Tenant {
        account_id: flow.account_id.clone(),
        environment_id: flow.environment_id.clone(),
    }
}

fn conflict(message: &str) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, message)
}

/// Header of each answer that repeats the first one.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

fn replayed(mut response: Response<Body>) -> Response<Body> {
    let is_replayed = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, is_replayed);
    response
}

/// Returns the 502 of a call whose first answer was one.
fn failed_again(kind: ErrorKind, first: &MessageId) -> Refusal {
    wait::failed(kind, first).with(REPLAYED, HeaderValue::from_static("true"))
}

/// Response as the trace of its message records it.
#[derive(Deserialize)]
struct RecordedResponse {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Option<Box<RawValue>>,
    #[serde(default)]
    truncated: bool,
}

impl RecordedResponse {
    /// Returns `None` for other records, and for a response that was truncated or masked.
    fn read(record: &TraceRecord) -> Option<Response<Body>> {
        let text = record
            .response
            .as_deref()
            .filter(|_| record.stage == "answered")?;
        let given: Self = serde_json::from_str(text)
            .ok()
            .filter(|given: &Self| !given.truncated)?;
        let masked = text.contains(MASK);
        given.into_response().filter(|_| !masked)
    }

    fn into_response(self) -> Option<Response<Body>> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).ok()?,
                HeaderValue::from_str(value).ok()?,
            );
        }
        let body = self.body.as_deref().map(RawValue::get).unwrap_or_default();
        // A body that is not JSON is recorded as a string.
        let body = if exchange::declares_json(&headers) {
            body.to_owned()
        } else {
            serde_json::from_str(body).unwrap_or_default()
        };
        let status = StatusCode::from_u16(self.status).unwrap_or_default();
        Some(wait::response(status, headers, body.into()))
    }
}

/// Request as its message records it.
#[derive(Deserialize)]
struct RecordedRequest<'d> {
    headers: Headers,
    #[serde(borrow)]
    query: &'d RawValue,
    #[serde(borrow)]
    path_params: &'d RawValue,
    #[serde(borrow)]
    api: CalledApi<'d>,
}

#[derive(Deserialize)]
struct CalledApi<'d> {
    #[serde(borrow)]
    version: &'d RawValue,
}

#[derive(Deserialize)]
struct Headers {
    #[serde(rename = "idempotency-key")]
    idempotency_key: Option<String>,
}

impl<'d> RecordedRequest<'d> {
    fn read(trigger: &'d [u8]) -> Option<Self> {
        serde_json::from_slice(trigger).ok()
    }

    /// Returns whether both are of the same version of the API, and have the same path parameters
    /// and query.
    fn is_at(&self, other: &Self) -> bool {
        let address = |request: &Self| {
            [request.api.version, request.path_params, request.query].map(RawValue::get)
        };
        address(self) == address(other)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use kanat_engine::Mask;
    use kanat_engine::exchange::{Extent, ResponseView};

    use super::*;

    /// Returns the body that a repeat gets of an answer.
    async fn repeated(content_type: &'static str, body: &str) -> Bytes {
        let value = HeaderValue::from_static(content_type);
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
        let answered = ResponseView {
            status: 200,
            headers: &headers,
            body: body.as_bytes(),
            extent: Extent::Whole,
        };
        let text = exchange::response(&answered, &Mask::new(&[]));
        let given: RecordedResponse = serde_json::from_str(&text).unwrap();
        let body = given.into_response().unwrap().into_body();
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_repeat_gets_the_bytes_of_the_first_answer() {
        for (content_type, body) in [
            ("application/json", r#"{"n": 1.10}"#),
            ("Application/Problem+JSON", r#""a""#),
            ("text/json", "[1]"),
            ("application/x-ndjson", "{\"n\":1}\n{\"n\":2}\n"),
            ("application/json5", "{n: 1}"),
            ("text/plain", "a \"b\""),
        ] {
            assert_eq!(repeated(content_type, body).await, body, "{content_type}");
        }
    }
}
