//! Routing of the data plane's port.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use kanat_model::media_type;
use kanat_net::body::{self, IncomingBody};
use kanat_net::{Body, request_id};

use crate::context::NodeContext;
use crate::error::Refusal;
use crate::ingress::webhook;
use crate::pipeline;
use crate::published;

const WEBHOOKS: &str = "/webhooks/receive/";
/// Prefix of paths that are never a published API.
const INBOUND: &str = "/inbound/";
/// A log that does not answer a readiness probe within this time is not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The service for all paths of the data plane.
#[derive(Clone)]
pub struct Service {
    shared: Arc<NodeContext>,
}

impl Service {
    pub(crate) fn new(shared: Arc<NodeContext>) -> Self {
        Self { shared }
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: IncomingBody + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { Ok(answer(&shared, request).await) })
    }
}

async fn answer<B: IncomingBody>(shared: &NodeContext, request: Request<B>) -> Response<Body> {
    let request_id = request_id::of(request.headers());
    let told_id = request_id.to_str().unwrap_or_default();
    let mut response = match route(shared, request, told_id).await {
        Ok(response) => response,
        Err(refusal) => {
            let response = refusal.into_response(told_id);
            kanat_telemetry::metrics().refused(response.status().as_u16());
            response
        }
    };
    response
        .headers_mut()
        .insert(request_id::HEADER, request_id);
    keep_from_scripts(response.headers_mut());
    if shared.is_going() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Prevents responses of flows and targets from running as scripts under this service's origin.
/// Only JSON, which browsers do not run, is sent unchanged; security headers of a mapping are
/// replaced.
fn keep_from_scripts(headers: &mut HeaderMap) {
    let content_type = headers.get(header::CONTENT_TYPE);
    if content_type.is_some_and(is_only_json) {
        return;
    }
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox"),
    );
}

/// Returns whether no browser takes a body of this content type for anything but JSON. Of several
/// types with commas between them, browsers take the last.
fn is_only_json(content_type: &HeaderValue) -> bool {
    let content_type = content_type.to_str().unwrap_or_default();
    media_type::is_json(content_type) && !content_type.contains(',')
}

/// Routes a request: fixed paths first, all others to the published APIs.
async fn route<B: IncomingBody>(
    shared: &NodeContext,
    request: Request<B>,
    request_id: &str,
) -> Result<Response<Body>, Refusal> {
    match request.uri().path() {
        "/health" => read_only(request.method()).map(|()| ok("ok")),
        "/ready" => {
            read_only(request.method())?;
            Ok(readiness(shared, request_id).await)
        }
        path => match path.strip_prefix(WEBHOOKS) {
            Some(token) if !token.is_empty() && !token.contains('/') => {
                if shared.pipeline.is_draining() {
                    return Err(Refusal::draining());
                }
                let token = token.to_owned();
                webhook::receive(shared, &token, request).await
            }
            Some(_) => Err(Refusal::not_found()),
            None if path.starts_with(INBOUND) => Err(Refusal::not_found()),
            None => Ok(published::call(shared, request, request_id).await),
        },
    }
}

fn read_only(method: &Method) -> Result<(), Refusal> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(Refusal::method("GET, HEAD"))
    }
}

async fn readiness(shared: &NodeContext, request_id: &str) -> Response<Body> {
    if shared.leaving.is_cancelled() {
        return not_ready("shutting down", request_id);
    }
    if !shared.plans.is_complete() {
        return not_ready("no plans yet", request_id);
    }
    if !shared.pipeline.is_ready() {
        return not_ready("not taking work", request_id);
    }
    let log = async {
        shared
            .pipeline
            .ping()
            .await
            .map_err(|error| pipeline::unavailability(&error))?;
        shared.pipeline.takes_messages().await
    };
    match tokio::time::timeout(PROBE_TIMEOUT, log).await {
        Ok(Ok(())) => ok("ready"),
        Ok(Err(reason)) => not_ready(&reason, request_id),
        Err(_) => not_ready("the message log does not answer", request_id),
    }
}

fn ok(state: &str) -> Response<Body> {
    status(StatusCode::OK, format!("{{\"status\":\"{state}\"}}"))
}

fn not_ready(state: &str, request_id: &str) -> Response<Body> {
    let mut text = b"{\"status\":".to_vec();
    kanat_mapping::json::write_string(state, &mut text);
    text.extend_from_slice(b",\"requestId\":");
    kanat_mapping::json::write_string(request_id, &mut text);
    text.push(b'}');
    let mut response = status(StatusCode::SERVICE_UNAVAILABLE, text);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn status(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(body::full(text));
    *response.status_mut() = code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_cannot_run_as_a_script() {
        let is_sandboxed = |content_type: &'static str| {
            let value = HeaderValue::from_static(content_type);
            let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
            keep_from_scripts(&mut headers);
            headers.contains_key(header::CONTENT_SECURITY_POLICY)
        };
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "text/json",
            "application/problem+json",
        ] {
            assert!(!is_sandboxed(json), "{json}");
        }
        for other in [
            "text/html",
            "image/svg+xml",
            "",
            "application/json, text/html",
            "application/json;a, text/html",
        ] {
            assert!(is_sandboxed(other), "{other}");
        }
    }
}
