//! Errors as callers of the data plane see them: a status and `{error, code, details, requestId}`.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use kanat_mapping::json::write_string;
use kanat_net::{Body, body};

/// Why a request is not answered as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    /// A header that this status calls for.
    header: Option<(header::HeaderName, HeaderValue)>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this address")
    }

    /// `allow` lists the methods that the path takes.
    pub fn method(allow: &'static str) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("this address takes {allow}"));
        refusal.with(header::ALLOW, HeaderValue::from_static(allow))
    }

    /// The caller may come back after `pause`.
    pub fn unavailable(message: impl Into<String>, pause: Duration) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        refusal.with(header::RETRY_AFTER, HeaderValue::from(pause.as_secs().max(1)))
    }

    pub fn with(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.header = Some((name, value));
        self
    }

    pub fn into_response(self, request_id: &str) -> Response<Body> {
        let mut text = Vec::with_capacity(160 + self.message.len());
        text.extend_from_slice(b"{\"error\":");
        write_string(&self.message, &mut text);
        text.extend_from_slice(b",\"code\":");
        write_string(code(self.status), &mut text);
        text.extend_from_slice(b",\"details\":[],\"requestId\":");
        write_string(request_id, &mut text);
        text.push(b'}');
        let mut response = Response::new(body::full(text));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// The canonical code that goes with a status.
fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "UNIMPLEMENTED",
        409 => "ALREADY_EXISTS",
        408 | 504 => "DEADLINE_EXCEEDED",
        413 | 429 | 431 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        status if status < 500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
