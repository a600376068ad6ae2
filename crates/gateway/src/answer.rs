//! The answer of a unary call: JSON, a file, a text, or nothing.

use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue,
};
use http::{Method, Response, StatusCode};
use kanat_net::{Body, body};
use prost_reflect::{DynamicMessage, FieldDescriptor, Value};
use tonic::Status;

use crate::call::Answer;
use crate::header;
use crate::route::Rpc;

/// Waits for the message, and answers with it. `headers` are the request's.
pub(crate) async fn unary(
    mut answer: Answer,
    rpc: &Rpc,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let bytes = answer
        .messages
        .next()
        .await?
        .ok_or_else(|| Status::internal("the service gave no message"))?;
    // The trailers may still tell of an error.
    while answer.messages.next().await?.is_some() {}
    let message = rpc.decode(bytes)?;

    let mut response = Response::new(body::empty());
    *response.headers_mut() = header::from_metadata(&answer.metadata);
    if let Some(tag) = tag(response.headers(), &message)
        && let Some(quoted) = header::quoted_tag(&tag)
    {
        response.headers_mut().insert(ETAG, quoted);
        if (method == Method::GET || method == Method::HEAD) && header::none_match(headers, &tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(response);
        }
    }
    let rest = &rpc.rest;
    *response.status_mut() = rest.status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if rest.status != StatusCode::NO_CONTENT {
        let (content_type, content) = content(rpc, &message);
        headers.insert(CONTENT_TYPE, content_type);
        if rest.download.is_some()
            && let Some(name) = disposition(&rest.file_name)
        {
            headers.insert(CONTENT_DISPOSITION, name);
        }
        *response.body_mut() = body::full(content);
    }
    Ok(response)
}

fn content(rpc: &Rpc, message: &DynamicMessage) -> (HeaderValue, Vec<u8>) {
    let rest = &rpc.rest;
    if let Some(field) = &rest.download {
        let binary = || HeaderValue::from_static("application/octet-stream");
        return (
            HeaderValue::from_str(&rest.content_type).unwrap_or_else(|_| binary()),
            raw(message, field),
        );
    }
    if let Some(field) = rest.text.as_ref().filter(|field| message.has_field(field)) {
        let plain = || HeaderValue::from_static("text/plain; charset=utf-8");
        let named = Some(&rest.content_type).filter(|name| !name.is_empty());
        let content_type = named.and_then(|name| HeaderValue::from_str(name).ok());
        return (content_type.unwrap_or_else(plain), raw(message, field));
    }
    let json = rpc.json(message, rest.response_body.as_ref());
    (HeaderValue::from_static("application/json"), json)
}

/// Returns the bytes of a field that is a string or bytes.
fn raw(message: &DynamicMessage, field: &FieldDescriptor) -> Vec<u8> {
    match message.get_field(field).as_ref() {
        Value::String(text) => text.clone().into_bytes(),
        Value::Bytes(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    }
}

/// Returns the tag of the metadata, else the `etag` field of the message.
fn tag(headers: &HeaderMap, message: &DynamicMessage) -> Option<String> {
    let from_metadata = headers
        .get(ETAG)
        .and_then(|v| v.to_str().ok())
        .map(str::to_owned);
    from_metadata.or_else(|| {
        let value = message.get_field_by_name("etag")?;
        value
            .as_str()
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
    })
}

fn disposition(file_name: &str) -> Option<HeaderValue> {
    let name: String = file_name
        .chars()
        .filter(|c| c.is_ascii_graphic() && *c != '"' && *c != '\\')
        .collect();
    if name.is_empty() {
        return Some(HeaderValue::from_static("attachment"));
    }
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")).ok()
}
