//! Input of a call: the payload of its message, validated by the schema of its version, and the
//! metadata of the request.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use kanat_engine::{form, trigger};
use kanat_mapping::json::{self, JsonError, write_string};
use kanat_message_log::key;
use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use kanat_model::message::Trigger;
use kanat_model::published_api::Validation;
use kanat_schema::Schema;

use super::access::Caller;
use super::route::Target;
use crate::credentials::{self, Document};
use crate::error::{Refusal, write_details};
use crate::payload::{self, CallBody, CallBodyError};
use crate::pipeline::Arrival;
use crate::plans::Runnable;
use crate::trace_context;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_KEY_LIMIT: usize = 255;

/// Builds the message of a call before it is stored.
///
/// # Errors
/// The input is malformed, or a strict API rejects it.
pub(crate) fn arrive(
    target: &Target,
    caller: &Caller,
    runnable: &Runnable,
    parts: &Parts,
    body: Bytes,
    at: Timestamp,
) -> Result<Arrival, Refusal> {
    let schema = target.version().request_schema.as_ref();
    let (raw_body, payload) = read(target, schema, parts, body)?;
    let given = payload.as_ref().unwrap_or(&raw_body);
    let faults =
        faults(schema, given).map_err(|error| unfit(payload::no_json(declared(parts), error)))?;
    if !faults.is_empty() && target.api.request_validation == Validation::Strict {
        let mut message = "the request does not fit the schema of this API".to_owned();
        let content_type = || parts.headers.get(header::CONTENT_TYPE).cloned();
        if payload::is_json_sent_as_form(given, content_type) {
            message = format!("{message}: {}", payload::JSON_SENT_AS_FORM);
        }
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, message).with_details(faults));
    }
    let document = document(target, caller, runnable, parts, &faults, at)?;
    let id = MessageId::generate();
    let keys = runnable.keys(given, &document.seen, at);
    let traceparent = trace_context::accept(&parts.headers, &id);
    Ok(Arrival {
        id,
        trigger_kind: Trigger::Api,
        raw_body,
        payload,
        ordering_key: keys.ordering.map(|key| key::ordering(document.key(key))),
        dedupe: keys
            .idempotency
            .map(|key| key::idempotency(document.key(key)))
            .into_iter()
            .collect(),
        trigger_document: document.kept,
        at,
        traceparent: Some(traceparent),
    })
}

/// Returns the body, and the payload when it differs from the body.
fn read(
    target: &Target,
    schema: Option<&Schema>,
    parts: &Parts,
    body: Bytes,
) -> Result<(Bytes, Option<Bytes>), Refusal> {
    if matches!(target.api.method, Method::GET | Method::DELETE) {
        return Ok((parameters(target, schema, parts)?, None));
    }
    match payload::of_call(declared(parts), &body).map_err(unfit)? {
        CallBody::Json => Ok((body, None)),
        CallBody::Nothing => Ok((body, Some(Bytes::from_static(b"null")))),
        CallBody::Form(members) => Ok((body, Some(written(schema, &members)))),
    }
}

/// Returns the declared content type.
fn declared(parts: &Parts) -> Option<&str> {
    parts
        .headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or("unreadable"))
}

fn unfit(unfit: CallBodyError) -> Refusal {
    let status = match unfit {
        CallBodyError::Type => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        CallBodyError::Malformed(_) => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, unfit.to_string())
}

/// Validates a JSON text by the schema and returns the violations by field. The same pass checks
/// the syntax.
fn faults(schema: Option<&Schema>, text: &[u8]) -> Result<Vec<(String, String)>, JsonError> {
    match schema {
        Some(schema) => Ok(schema
            .violations(text)?
            .into_iter()
            .map(|fault| (fault.field, fault.message))
            .collect()),
        None => json::check(text, json::MAX_DEPTH).map(|()| Vec::new()),
    }
}

/// Returns the input of `GET` and `DELETE`: query and path parameters. The latter take precedence.
fn parameters(target: &Target, schema: Option<&Schema>, parts: &Parts) -> Result<Bytes, Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let mut members = form::members(query.as_bytes())
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    for (name, value) in &target.parameters {
        members.retain(|(other, _)| other != name);
        members.push((name.clone(), vec![value.clone()]));
    }
    Ok(written(schema, &members))
}

/// Writes pairs of texts as JSON, with the types of the schema, if there is one.
fn written(schema: Option<&Schema>, members: &[(String, Vec<String>)]) -> Bytes {
    let pairs = members
        .iter()
        .flat_map(|(name, values)| values.iter().map(|value| (name.as_str(), value.as_str())));
    match schema {
        Some(schema) => schema.read_parameters(pairs).into(),
        None => {
            let mut out = Vec::with_capacity(64);
            trigger::write_members(members, &mut out);
            out.into()
        }
    }
}

/// Returns the value of `trigger` in expressions, with the API, the caller, and the violations that
/// a lenient API tolerates.
fn document(
    target: &Target,
    caller: &Caller,
    runnable: &Runnable,
    parts: &Parts,
    faults: &[(String, String)],
    at: Timestamp,
) -> Result<Document, Refusal> {
    let mut path_params = Vec::with_capacity(32);
    path_params.push(b'{');
    for (place, (name, value)) in target.parameters.iter().enumerate() {
        if place > 0 {
            path_params.push(b',');
        }
        write_string(name, &mut path_params);
        path_params.push(b':');
        write_string(value, &mut path_params);
    }
    path_params.push(b'}');
    let mut members = Vec::with_capacity(128);
    members.extend_from_slice(b"\"api\":{\"id\":");
    write_string(&target.api.id, &mut members);
    members.extend_from_slice(b",\"version\":");
    write_string(&target.version().label, &mut members);
    if let Some(consumer) = caller.consumer() {
        members.extend_from_slice(b",\"consumer\":");
        write_string(consumer, &mut members);
    }
    members.push(b'}');
    if !faults.is_empty() {
        members.extend_from_slice(b",\"validation\":");
        write_details(faults, &mut members);
    }
    let query = form::members(parts.uri.query().unwrap_or_default().as_bytes())
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let received = trigger::InboundRequest {
        method: &parts.method,
        headers: &parts.headers,
        query,
        at,
        verify: None,
        path_params: &path_params,
        members: &members,
    };
    Ok(credentials::document(runnable, &received))
}

/// Returns the idempotency key of a call, if it has one.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(first) = given.next() else {
        return Ok(None);
    };
    let is_visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let text = first
        .to_str()
        .ok()
        .filter(|text| (1..=IDEMPOTENCY_KEY_LIMIT).contains(&text.len()))
        .filter(is_visible);
    match text.filter(|_| given.next().is_none()) {
        Some(text) => Ok(Some(text.to_owned())),
        None => {
            let message = format!(
                "Idempotency-Key comes once, with 1 to {IDEMPOTENCY_KEY_LIMIT} visible characters \
                 of ASCII"
            );
            Err(Refusal::new(StatusCode::BAD_REQUEST, message))
        }
    }
}
