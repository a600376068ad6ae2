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
use serde_json::json;
use tonic::{Code, Status};

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
        let (_, status) = table(code);
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
        // Further members of a detail are JSON text, so that numbers keep their digits.
        let detail = |detail: &FieldError| {
            let field = excerpt(&detail.field);
            let mut shown =
                json!({ "field": field, "message": excerpt(&detail.message) }).to_string();
            if !detail.members.is_empty() {
                shown.pop();
                shown.extend([",", &detail.members, "}"]);
            }
            shown
        };
        let details: Vec<_> = self.details.iter().map(detail).collect();
        format!(
            r#"{{"error":{},"code":{},"details":[{}],"requestId":{}}}"#,
            json!(excerpt(&self.message)),
            json!(table(self.code).0),
            details.join(","),
            json!(request_id),
        )
        .into_bytes()
    }

    pub(crate) fn respond(self, request_id: &str) -> Response<Body> {
        if self.status.is_client_error() {
            let status = self.status.as_u16();
            let code = table(self.code).0;
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
        let headers = response.headers_mut();
        let own = self.headers.into_iter();
        headers.extend(own.map(|(name, value)| (Some(name), value)));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
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

/// Table of the API contract: the name of a code in answers, and its HTTP status. Codes that our
/// services do not return follow the same pattern.
fn table(code: Code) -> (&'static str, StatusCode) {
    match code {
        Code::Ok => ("OK", StatusCode::OK),
        Code::InvalidArgument => ("INVALID_ARGUMENT", StatusCode::BAD_REQUEST),
        Code::FailedPrecondition => ("FAILED_PRECONDITION", StatusCode::BAD_REQUEST),
        Code::OutOfRange => ("OUT_OF_RANGE", StatusCode::BAD_REQUEST),
        Code::Unauthenticated => ("UNAUTHENTICATED", StatusCode::UNAUTHORIZED),
        Code::PermissionDenied => ("PERMISSION_DENIED", StatusCode::FORBIDDEN),
        Code::NotFound => ("NOT_FOUND", StatusCode::NOT_FOUND),
        Code::AlreadyExists => ("ALREADY_EXISTS", StatusCode::CONFLICT),
        Code::Aborted => ("ABORTED", StatusCode::CONFLICT),
        Code::ResourceExhausted => ("RESOURCE_EXHAUSTED", StatusCode::TOO_MANY_REQUESTS),
        Code::Unimplemented => ("UNIMPLEMENTED", StatusCode::NOT_IMPLEMENTED),
        Code::Unavailable | Code::Cancelled => ("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE),
        Code::DeadlineExceeded => ("DEADLINE_EXCEEDED", StatusCode::GATEWAY_TIMEOUT),
        Code::Internal | Code::Unknown | Code::DataLoss => {
            ("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}
