//! Calls from pages in browsers: the origins of `allowed_origins` may use REST and gRPC-Web, others
//! may not. Published APIs have rules of their own.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use kanat_net::{Body, body};

/// Methods that a preflight allows.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// Seconds for which a browser may keep the answer of a preflight.
const MAX_AGE: &str = "600";
/// Headers of answers that scripts may read.
const EXPOSED: &str = "content-disposition, etag, grpc-message, grpc-status, \
                       grpc-status-details-bin, retry-after, x-config-applied, x-request-id";
/// The paths of the gRPC services that gRPC-Web calls.
const GRPC_PATHS: [&str; 2] = ["/kanat.v1.", "/grpc."];

/// The origins that may call; none by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cors {
    allowed: Arc<[String]>,
}

impl Cors {
    /// Allows these origins, which are in lower case; `*` is all of them.
    pub fn new(allowed: Vec<String>) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    /// Answers the question of a browser before a call of another origin; none when the request is
    /// something else.
    pub fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let asked = request.headers();
        let origin = self.allows(asked.get(header::ORIGIN)?)?;
        if request.method() != Method::OPTIONS
            || !asked.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let mut response = Response::new(body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        let varies = "origin, access-control-request-method, access-control-request-headers";
        headers.insert(header::VARY, HeaderValue::from_static(varies));
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(METHODS),
        );
        // Nothing goes along by itself: credentials stand in a header that the page sets.
        if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        headers.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static(MAX_AGE),
        );
        Some(response)
    }

    /// Adds to the headers of an answer what lets a page of `origin` read it.
    pub fn mark(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
        if self.allowed.is_empty() {
            return;
        }
        answer.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin.and_then(|origin| self.allows(origin)) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            answer.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(EXPOSED),
            );
        }
    }

    fn allows(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        let text = origin.to_str().ok()?;
        let is_allowed = |known: &String| known == "*" || known.eq_ignore_ascii_case(text);
        self.allowed.iter().any(is_allowed).then(|| origin.clone())
    }
}

/// Returns whether a browser asks for a call of gRPC-Web.
pub(crate) fn asks_for_grpc<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        && GRPC_PATHS.iter().any(|prefix| path.starts_with(prefix))
}
