//! The port of a control plane: its API, whether the process is alive and ready, and all paths of a
//! data plane where the process has one.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use kanat_control_plane::{ControlPlane, Monitor, PublicService};
use kanat_net::{Body, Inbound};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::page::Page;
use super::{live, plain};

/// Databases that do not answer a readiness probe within this time are not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Every path of the port.
#[derive(Clone)]
pub struct Router {
    control: PublicService,
    monitor: Monitor,
    other: OtherPaths,
    page: Page,
    shutdown: CancellationToken,
}

/// Answers to requests that are not the control plane's.
#[derive(Clone)]
pub enum OtherPaths {
    /// The data plane of this process.
    DataPlane(kanat_data_plane::Service),
    /// Probes alone. The process is not ready once it is leaving.
    Probes { leaving: CancellationToken },
}

impl Router {
    /// Live streams end at `shutdown`.
    pub fn new(
        control: &ControlPlane,
        other: OtherPaths,
        page: Page,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            control: control.service(),
            monitor: control.monitor(),
            other,
            page,
            shutdown,
        }
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
            let answer = self.control.call(Inbound::with_pacing(request));
            let shutdown = self.shutdown.clone();
            return Box::pin(async move {
                answer
                    .await
                    .map(|response| live::end_at(&shutdown, response))
            });
        }
        if request.uri().path() == "/ready" {
            let headers = request.headers().clone();
            let away = self.other.database_is_away();
            let answer = self.other.call(request);
            let monitor = self.monitor.clone();
            return Box::pin(async move {
                Ok(readiness(answer.await?, &monitor, away, &headers).await)
            });
        }
        if let Some(page) = self.page.answer(&request) {
            return Box::pin(std::future::ready(Ok(page)));
        }
        self.other.call(request)
    }
}

impl OtherPaths {
    fn call(
        &mut self,
        request: Request<Inbound>,
    ) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        match self {
            Self::DataPlane(service) => service.call(request),
            Self::Probes { leaving } => {
                let answer = probe(request.uri().path(), leaving, request.headers());
                Box::pin(std::future::ready(Ok(answer)))
            }
        }
    }

    /// Returns the reason for not being ready while the control plane's database is away.
    fn database_is_away(&self) -> &'static str {
        match self {
            Self::DataPlane(_) => "the configuration store is out of reach",
            Self::Probes { .. } => "the database is out of reach",
        }
    }
}

fn probe(path: &str, leaving: &CancellationToken, headers: &HeaderMap) -> Response<Body> {
    match path {
        "/health" => plain::state(StatusCode::OK, "ok", headers),
        "/ready" if leaving.is_cancelled() => {
            plain::state(StatusCode::SERVICE_UNAVAILABLE, "shutting down", headers)
        }
        "/ready" => plain::state(StatusCode::OK, "ready", headers),
        _ => {
            let text = "there is nothing here; the API is under /api/v1";
            plain::error(StatusCode::NOT_FOUND, "NOT_FOUND", text, headers)
        }
    }
}

/// Returns `other`, the readiness of the other parts, unless the control plane is not ready.
async fn readiness(
    other: Response<Body>,
    control: &Monitor,
    away: &'static str,
    headers: &HeaderMap,
) -> Response<Body> {
    if other.status() != StatusCode::OK {
        return other;
    }
    match tokio::time::timeout(PROBE_TIMEOUT, control.ready()).await {
        Ok(true) => other,
        Ok(false) | Err(_) => plain::state(StatusCode::SERVICE_UNAVAILABLE, away, headers),
    }
}
