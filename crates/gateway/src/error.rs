//! Errors for callers, and the one table from gRPC codes to HTTP.

mod status;

use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Method, Response, StatusCode};
use kanat_model::FieldError;
use kanat_model::error::excerpt;
use kanat_net::body::TooSlow;
use kanat_net::budget::NoRoom;
use kanat_net::{Body, body};
use tonic::{Code, Status};

use crate::json;
use crate::json::MalformedJson;

/// An answer that is an error.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    code: Code,
    status: StatusCode,
    message: String,
    details: Vec<FieldError>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let status = http_status(code);
        Self {
            code,
            status,
            message: message.into(),
            details: Vec::new(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Creates the error of faults in fields, of which there is at least one.
    pub(crate) fn fields(details: Vec<FieldError>) -> Self {
        let message = match details.split_first() {
            Some((first, [])) => format!("{}: {}", first.field, first.message),
            Some((first, more)) => format!(
                "{}: {} (and {} more)",
                first.field,
                first.message,
                more.len()
            ),
            None => "the request is wrong".to_owned(),
        };
        Self {
            details,
            ..Self::invalid(message)
        }
    }

    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::fields(vec![FieldError::new(field, message)])
    }

    pub(crate) fn malformed(error: &MalformedJson) -> Self {
        let message = error.to_string();
        Self {
            details: vec![FieldError::new(error.field.clone(), message.clone())],
            ..Self::invalid(message)
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub(crate) fn not_allowed(path: &str, allowed: &[Method]) -> Self {
        let names: Vec<_> = allowed.iter().map(Method::as_str).collect();
        let names = names.join(", ");
        let mut problem = Self::new(Code::Unimplemented, format!("{path} takes only {names}"));
        problem.status = StatusCode::METHOD_NOT_ALLOWED;
        problem.header(ALLOW, &names);
        problem
    }

    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            Code::Unauthenticated,
            "a credential is needed: Authorization: Bearer <token>",
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let problem = Self::invalid(format!("the body is larger than {limit} bytes"));
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..problem
        }
    }

    /// Creates the error of a body that arrives too slowly.
    pub(crate) fn too_slow(error: TooSlow) -> Self {
        Self {
            status: StatusCode::REQUEST_TIMEOUT,
            ..Self::new(Code::DeadlineExceeded, error.to_string())
        }
    }

    /// Creates the error of a body for which there is no room in memory.
    pub(crate) fn busy(error: NoRoom) -> Self {
        let mut problem = Self::new(Code::Unavailable, error.to_string());
        problem.retry_after(Duration::from_secs(1));
        problem
    }

    /// Returns the status of the problem for the service.
    pub(crate) fn status(&self) -> Status {
        Status::new(self.code, self.message.as_str())
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ..Self::invalid(message)
        }
    }

    /// Returns the body of the error, in one line.
    pub(crate) fn body(&self, request_id: &str) -> Vec<u8> {
        let mut out = b"{\"error\":".to_vec();
        json::write_string(&excerpt(&self.message), &mut out);
        out.extend_from_slice(b",\"code\":");
        json::write_string(code_name(self.code), &mut out);
        out.extend_from_slice(b",\"details\":[");
        for (at, detail) in self.details.iter().enumerate() {
            out.extend_from_slice(if at == 0 {
                b"{\"field\":"
            } else {
                b",{\"field\":"
            });
            json::write_string(&excerpt(&detail.field), &mut out);
            out.extend_from_slice(b",\"message\":");
            json::write_string(&excerpt(&detail.message), &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"],\"requestId\":");
        json::write_string(request_id, &mut out);
        out.push(b'}');
        out
    }

    pub(crate) fn respond(self, request_id: &str) -> Response<Body> {
        if self.status.is_client_error() {
            let status = self.status.as_u16();
            let code = code_name(self.code);
            // Without the message, which may quote what was sent.
            tracing::debug!(
                request.id = request_id,
                http.status = status,
                code,
                "a call was refused"
            );
        }
        let mut response = Response::new(body::full(self.body(request_id)));
        *response.status_mut() = self.status;
        response.headers_mut().extend(
            self.headers
                .into_iter()
                .map(|(name, value)| (Some(name), value)),
        );
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    fn retry_after(&mut self, delay: Duration) {
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        self.header(RETRY_AFTER, &seconds.to_string());
    }

    fn header(&mut self, name: HeaderName, value: &str) {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
    }
}

/// Table of the API contract. Codes that our services do not return follow the same pattern.
fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable | Code::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal | Code::Unknown | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unauthenticated => "UNAUTHENTICATED",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::Aborted => "ABORTED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Unavailable | Code::Cancelled => "UNAVAILABLE",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::Internal | Code::Unknown | Code::DataLoss => "INTERNAL",
    }
}
