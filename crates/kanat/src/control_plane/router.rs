//! The control plane's port: its API, and whether the process is alive and ready.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use kanat_control_plane::{ControlPlane, PublicService};
use kanat_net::{Body, Inbound, body};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::process::live;

/// Databases that do not answer a readiness probe within this time are not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Every path of the port.
#[derive(Clone)]
pub struct Router {
    control: Arc<ControlPlane>,
    service: PublicService,
    leaving: CancellationToken,
    shutdown: CancellationToken,
}

impl Router {
    /// It is not ready once it is `leaving`; live streams end at `shutdown`.
    pub fn new(control: Arc<ControlPlane>, leaving: CancellationToken, shutdown: CancellationToken) -> Self {
        Self { service: control.service(), control, leaving, shutdown }
    }
}

impl Service<Request<Inbound>> for Router {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    /// Always ready: what is too much is answered with 429 or 503.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        if PublicService::serves(&request) {
            let (answer, shutdown) = (self.service.call(request), self.shutdown.clone());
            return Box::pin(async move { answer.await.map(|response| live::end_at(&shutdown, response)) });
        }
        let (control, leaving) = (Arc::clone(&self.control), self.leaving.clone());
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/health" => status(StatusCode::OK, r#"{"status":"ok"}"#),
                "/ready" => readiness(&control, &leaving).await,
                _ => status(
                    StatusCode::NOT_FOUND,
                    r#"{"error":"there is nothing here; the API is under /api/v1","code":"NOT_FOUND","details":[]}"#,
                ),
            })
        })
    }
}

async fn readiness(control: &ControlPlane, leaving: &CancellationToken) -> Response<Body> {
    if leaving.is_cancelled() {
        return status(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"shutting down"}"#);
    }
    match tokio::time::timeout(PROBE_TIMEOUT, control.ready()).await {
        Ok(true) => status(StatusCode::OK, r#"{"status":"ready"}"#),
        Ok(false) | Err(_) => status(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"the database is out of reach"}"#),
    }
}

fn status(code: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(body::full(text));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
