//! The control plane's port: its API, and whether the process is alive and ready.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use kanat_control_plane::{ControlPlane, PublicService};
use kanat_net::{Body, Inbound};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::process::page::Page;
use crate::process::{live, plain};

/// Databases that do not answer a readiness probe within this time are not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Every path of the port.
#[derive(Clone)]
pub struct Router {
    control: Arc<ControlPlane>,
    service: PublicService,
    page: Page,
    leaving: CancellationToken,
    shutdown: CancellationToken,
}

impl Router {
    /// It is not ready once it is `leaving`; live streams end at `shutdown`.
    pub fn new(
        control: Arc<ControlPlane>,
        page: Page,
        leaving: CancellationToken,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            service: control.service(),
            control,
            page,
            leaving,
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
            let answer = self.service.call(Inbound::with_pacing(request));
            let shutdown = self.shutdown.clone();
            return Box::pin(async move {
                answer
                    .await
                    .map(|response| live::end_at(&shutdown, response))
            });
        }
        if let Some(page) = self.page.answer(&request) {
            return Box::pin(std::future::ready(Ok(page)));
        }
        let control = Arc::clone(&self.control);
        let leaving = self.leaving.clone();
        Box::pin(async move {
            let headers = request.headers();
            Ok(match request.uri().path() {
                "/health" => plain::state(StatusCode::OK, "ok", headers),
                "/ready" => readiness(&control, &leaving, headers).await,
                _ => {
                    let text = "there is nothing here; the API is under /api/v1";
                    plain::error(StatusCode::NOT_FOUND, "NOT_FOUND", text, headers)
                }
            })
        })
    }
}

async fn readiness(
    control: &ControlPlane,
    leaving: &CancellationToken,
    headers: &HeaderMap,
) -> Response<Body> {
    if leaving.is_cancelled() {
        return plain::state(StatusCode::SERVICE_UNAVAILABLE, "shutting down", headers);
    }
    match tokio::time::timeout(PROBE_TIMEOUT, control.ready()).await {
        Ok(true) => plain::state(StatusCode::OK, "ready", headers),
        Ok(false) | Err(_) => plain::state(
            StatusCode::SERVICE_UNAVAILABLE,
            "the database is out of reach",
            headers,
        ),
    }
}
