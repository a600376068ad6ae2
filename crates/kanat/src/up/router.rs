//! One port for both planes: the control plane says which requests are its own, the rest is the data plane's. Only
//! whether they are ready is asked of both.

use std::convert::Infallible;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use kanat_control_plane::{ControlPlane, Monitor, PublicService};
use kanat_net::{Body, Inbound, body};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::process::live;

/// A store that does not answer a readiness probe within this time is not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The services of both planes behind one.
#[derive(Clone)]
pub struct Router {
    control: PublicService,
    monitor: Monitor,
    data: kanat_data_plane::Service,
    shutdown: CancellationToken,
}

impl Router {
    /// Live streams end at `shutdown`.
    pub fn new(control: &ControlPlane, data: kanat_data_plane::Service, shutdown: CancellationToken) -> Self {
        Self { control: control.service(), monitor: control.monitor(), data, shutdown }
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
            let (answer, shutdown) = (self.control.call(request), self.shutdown.clone());
            return Box::pin(async move { answer.await.map(|response| live::end_at(&shutdown, response)) });
        }
        if request.uri().path() == "/ready" {
            let (answer, monitor) = (self.data.call(request), self.monitor.clone());
            return Box::pin(async move { Ok(readiness(answer.await?, &monitor).await) });
        }
        self.data.call(request)
    }
}

/// What the data plane says of itself, unless the control plane is not ready.
async fn readiness(data: Response<Body>, control: &Monitor) -> Response<Body> {
    if data.status() != StatusCode::OK {
        return data;
    }
    match tokio::time::timeout(PROBE_TIMEOUT, control.ready()).await {
        Ok(true) => data,
        Ok(false) | Err(_) => {
            let mut response = Response::new(body::full(r#"{"status":"the configuration store is out of reach"}"#));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
    }
}
