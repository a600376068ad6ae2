//! One port for both planes: the control plane says which requests are its own, the rest is the
//! data plane's. Only whether they are ready is asked of both.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode};
use kanat_control_plane::{ControlPlane, Monitor, PublicService};
use kanat_net::{Body, Inbound};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::process::page::Page;
use crate::process::{live, plain};

/// A store that does not answer a readiness probe within this time is not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The services of both planes behind one.
#[derive(Clone)]
pub struct Router {
    control: PublicService,
    monitor: Monitor,
    data: kanat_data_plane::Service,
    page: Page,
    shutdown: CancellationToken,
}

impl Router {
    /// Live streams end at `shutdown`.
    pub fn new(
        control: &ControlPlane,
        data: kanat_data_plane::Service,
        page: Page,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            control: control.service(),
            monitor: control.monitor(),
            data,
            page,
            shutdown,
        }
    }
}

impl Service<Request<Inbound>> for Router {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    /// Both are always ready: what is too much they answer with 429 or 503.
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
            let answer = self.data.call(request);
            let monitor = self.monitor.clone();
            return Box::pin(async move { Ok(readiness(answer.await?, &monitor, &headers).await) });
        }
        if let Some(page) = self.page.answer(&request) {
            return Box::pin(std::future::ready(Ok(page)));
        }
        self.data.call(request)
    }
}

/// What the data plane says of itself, unless the control plane is not ready.
async fn readiness(data: Response<Body>, control: &Monitor, headers: &HeaderMap) -> Response<Body> {
    if data.status() != StatusCode::OK {
        return data;
    }
    match tokio::time::timeout(PROBE_TIMEOUT, control.ready()).await {
        Ok(true) => data,
        Ok(false) | Err(_) => plain::state(
            StatusCode::SERVICE_UNAVAILABLE,
            "the configuration store is out of reach",
            headers,
        ),
    }
}
