//! Short answers that neither plane gives: states, and errors of the form that both planes use.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use kanat_net::{Body, body, request_id};
use serde_json::{Value, json};

/// Answers with a state, such as that of a probe. `headers` are the request's.
pub fn state(status: StatusCode, state: &'static str, headers: &HeaderMap) -> Response<Body> {
    let id = request_id::of(headers);
    let mut members = json!({ "status": state });
    if status != StatusCode::OK {
        members["requestId"] = id.to_str().unwrap_or_default().into();
    }
    identified(self::json(status, &members), id)
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
    let members = json!({ "error": error, "code": code, "details": [], "requestId": told });
    identified(self::json(status, &members), id)
}

/// Answers with JSON.
pub fn json(status: StatusCode, members: &Value) -> Response<Body> {
    let mut response = Response::new(body::full(members.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn identified(mut response: Response<Body>, request_id: HeaderValue) -> Response<Body> {
    let is_away = response.status() == StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(request_id::HEADER, request_id);
    if is_away {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
