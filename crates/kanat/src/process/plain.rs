//! Short answers that neither plane gives: states, and errors of the form that both planes use.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kanat_net::{Body, body, request_id};

/// Answers with a state, such as that of a probe. `headers` are the request's.
pub fn state(status: StatusCode, state: &'static str, headers: &HeaderMap) -> Response<Body> {
    let mut members = serde_json::json!({ "status": state });
    let id = request_id::of(headers);
    if status != StatusCode::OK {
        members["requestId"] = id.to_str().unwrap_or_default().into();
    }
    json(status, &members, id)
}

/// Answers with an error. `code` is a canonical one, such as `NOT_FOUND`; `headers` are the
/// request's.
pub fn error(
    status: StatusCode,
    code: &'static str,
    error: &'static str,
    headers: &HeaderMap,
) -> Response<Body> {
    let id = request_id::of(headers);
    let told = id.to_str().unwrap_or_default();
    json(
        status,
        &serde_json::json!({ "error": error, "code": code, "details": [], "requestId": told }),
        id,
    )
}

fn json(
    status: StatusCode,
    members: &serde_json::Value,
    request_id: HeaderValue,
) -> Response<Body> {
    let mut response = Response::new(body::full(members.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(request_id::HEADER, request_id);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
