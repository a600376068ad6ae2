//! Error responses of the data plane: a status and `{error, code, details, requestId}`.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use kanat_mapping::json::write_string;
use kanat_net::{Body, body};

/// Reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    message: String,
    /// Fields, each with its error.
    details: Vec<(String, String)>,
    /// Further members of the body, as JSON writes them.
    members: Vec<u8>,
    /// Headers of the response.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let details = Vec::new();
        let members = Vec::new();
        let headers = Vec::new();
        Self {
            status,
            message: message.into(),
            details,
            members,
            headers,
        }
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this address")
    }

    /// `allow` lists the methods that the path takes.
    pub fn method(allow: &'static str) -> Self {
        let refusal = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("this address takes {allow}"),
        );
        refusal.with(header::ALLOW, HeaderValue::from_static(allow))
    }

    /// Returns the refusal of a caller that may try again after `pause`.
    pub fn unavailable(message: impl Into<String>, pause: Duration) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        refusal.with(
            header::RETRY_AFTER,
            HeaderValue::from(pause.as_secs().max(1)),
        )
    }

    /// Returns the refusal while the node has no plans: the address may exist.
    pub fn no_plans() -> Self {
        Self::unavailable("this node has no plans yet", Duration::from_secs(1))
    }

    pub fn draining() -> Self {
        Self::unavailable("this node is shutting down", Duration::from_secs(1))
    }

    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// `details` are pairs of a field and what is wrong with it.
    pub fn with_details(mut self, details: Vec<(String, String)>) -> Self {
        self.details = details;
        self
    }

    /// `members` are JSON, separated by commas.
    pub fn with_members(mut self, members: Vec<u8>) -> Self {
        self.members = members;
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the message for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn into_response(self, request_id: &str) -> Response<Body> {
        let mut text = Vec::with_capacity(160 + self.message.len());
        text.extend_from_slice(b"{\"error\":");
        write_string(&self.message, &mut text);
        text.extend_from_slice(b",\"code\":");
        write_string(code(self.status), &mut text);
        text.extend_from_slice(b",\"details\":");
        write_details(&self.details, &mut text);
        text.extend_from_slice(b",\"requestId\":");
        write_string(request_id, &mut text);
        if !self.members.is_empty() {
            text.push(b',');
            text.extend_from_slice(&self.members);
        }
        text.push(b'}');
        let mut response = Response::new(body::full(text));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        response
    }
}

/// `[{field, message}]`.
pub(crate) fn write_details(details: &[(String, String)], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, (field, message)) in details.iter().enumerate() {
        out.extend_from_slice(if at > 0 {
            b",{\"field\":"
        } else {
            b"{\"field\":"
        });
        write_string(field, out);
        out.extend_from_slice(b",\"message\":");
        write_string(message, out);
        out.push(b'}');
    }
    out.push(b']');
}

/// Returns the canonical code of a status.
fn code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "UNIMPLEMENTED",
        409 => "ALREADY_EXISTS",
        408 | 504 => "DEADLINE_EXCEEDED",
        410 => "FAILED_PRECONDITION",
        429 | 431 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        status if status < 500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}
