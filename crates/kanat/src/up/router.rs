//! One port for both planes: the control plane says which requests are its own, the rest is the data plane's.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kanat_control_plane::PublicService;
use kanat_net::{Body, Inbound};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::process::live;

/// The services of both planes behind one.
#[derive(Clone)]
pub struct Router {
    control: PublicService,
    data: kanat_data_plane::Service,
    shutdown: CancellationToken,
}

impl Router {
    /// Live streams end at `shutdown`.
    pub fn new(control: PublicService, data: kanat_data_plane::Service, shutdown: CancellationToken) -> Self {
        Self { control, data, shutdown }
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
        if !PublicService::serves(&request) {
            return self.data.call(request);
        }
        let (answer, shutdown) = (self.control.call(request), self.shutdown.clone());
        Box::pin(async move { answer.await.map(|response| live::end_at(&shutdown, response)) })
    }
}
