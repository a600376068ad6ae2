//! Middleware of the management API: an async function in front of a service. The order in which
//! the functions run is in `service.rs`.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tonic::body::Body;
use tower::Service;

/// A service that answers every request, by an error status where it fails.
pub trait HttpService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> HttpService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// A function in front of a service. Its clones share their state.
pub trait Middleware: Clone + Send + 'static {
    /// Answers a request, by the service behind it or without.
    fn handle<S: HttpService>(
        self,
        request: Request<Body>,
        next: Next<S>,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Puts the function in front of a service.
    fn layer<S>(self, inner: S) -> MiddlewareService<Self, S> {
        MiddlewareService {
            middleware: self,
            inner,
        }
    }
}

/// The service behind a middleware, ready for one request.
pub struct Next<S>(S);

impl<S: HttpService> Next<S> {
    pub async fn run(mut self, request: Request<Body>) -> Response<Body> {
        match self.0.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// A service with a middleware in front of it.
#[derive(Clone)]
pub struct MiddlewareService<M, S> {
    middleware: M,
    inner: S,
}

impl<M: Middleware, S: HttpService> Service<Request<Body>> for MiddlewareService<M, S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The clone takes the place of the service that was polled for readiness.
        let clone = self.inner.clone();
        let next = Next(std::mem::replace(&mut self.inner, clone));
        let middleware = self.middleware.clone();
        Box::pin(async move { Ok(middleware.handle(request, next).await) })
    }
}
