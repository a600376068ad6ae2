//! One service for the public paths: `/api/v1` goes through the gateway, everything else is gRPC or
//! gRPC-Web. Both end at the same routes, behind the same authentication; nodes have a service of
//! their own.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use kanat_gateway::Gateway;
use kanat_net::body::BoxError;
use kanat_net::budget::Budget;
use kanat_net::server::answer::AtAnyPace;
use kanat_net::{Body, Pacing};
use kanat_proto::DESCRIPTORS;
use tonic::service::Routes;
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::util::MapResponse;
use tower::{Layer, Service, ServiceExt};

use crate::Error;
use crate::admission::Admission;
use crate::app::App;
use crate::authentication::{Authentication, Rules};
use crate::cors::{self, Cors};
use crate::deadline::Deadline;
use crate::grpc;
use crate::idempotency::Idempotency;
use crate::middleware::{Middleware, MiddlewareService};
use crate::push::remote::{self, RemotePlanService};
use crate::validation::Validation;

/// Path that OAuth2 providers redirect to: below a prefix that is otherwise the data plane's.
const OAUTH_CALLBACK: &str = "/inbound/oauth/callback";

/// Bytes of all bodies of the API that are being read or answered.
const MAX_BODY_BYTES: usize = 256 << 20;

/// The services of the public API, as calls of this process reach them.
type Api = MiddlewareService<
    Authentication,
    MiddlewareService<
        Admission,
        MiddlewareService<Idempotency, MiddlewareService<Validation, Routes>>,
    >,
>;
/// The services of the public API, as callers outside of the process reach them.
type RemoteApi = MapResponse<
    MiddlewareService<Deadline, Api>,
    fn(Response<tonic::body::Body>) -> Response<tonic::body::Body>,
>;

/// The service of the public paths; a cheap handle.
#[derive(Clone)]
pub struct PublicService {
    gateway: Arc<Gateway<Api>>,
    grpc: GrpcWebService<RemoteApi>,
    nodes: Option<RemotePlanService>,
    cors: Cors,
}

impl PublicService {
    pub(crate) async fn new(
        app: &Arc<App>,
        nodes: Option<RemotePlanService>,
        cors: Cors,
    ) -> Result<Self, Error> {
        let rules = Rules::read(&DESCRIPTORS).map_err(Error::Descriptors)?;
        let routes = grpc::routes(app).await?.prepare();
        let routes = Validation::new(&DESCRIPTORS).layer(routes);
        let rules = Arc::new(rules);
        let routes = Idempotency::new(Arc::clone(app), Arc::clone(&rules)).layer(routes);
        let memory = Budget::new(MAX_BODY_BYTES);
        let routes = Admission::new(Arc::clone(&rules), Arc::clone(&memory)).layer(routes);
        let api = Authentication::new(Arc::clone(app), rules).layer(routes);
        let gateway = Gateway::new(&DESCRIPTORS, api.clone());
        let gateway = gateway.map_err(|error| Error::Descriptors(error.to_string()))?;
        let gateway = gateway.with_options(kanat_gateway::Options {
            memory,
            ..kanat_gateway::Options::default()
        });
        let remote: RemoteApi = MapResponse::new(Deadline.layer(api), as_callers_see_it);
        Ok(Self {
            gateway: Arc::new(gateway),
            grpc: GrpcWebLayer::new().layer(remote),
            nodes,
            cors,
        })
    }

    /// Returns whether a request is for the control plane; the other paths are the data plane's.
    pub fn serves<B>(request: &Request<B>) -> bool {
        is_rest(request.uri().path()) || is_grpc(request) || cors::asks_for_grpc(request)
    }
}

impl<B> Service<Request<B>> for PublicService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(answer) = self.cors.preflight(&request) {
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let cors = self.cors.clone();
        let origin = request.headers().get(http::header::ORIGIN).cloned();
        if is_rest(request.uri().path()) {
            // What comes over REST has a pace, also where it is read while it comes.
            request.extensions_mut().remove::<Pacing>();
            let gateway = Arc::clone(&self.gateway);
            return Box::pin(async move {
                let mut response = gateway.handle(request).await;
                cors.mark(origin.as_ref(), response.headers_mut());
                Ok(response)
            });
        }
        if cors::asks_for_grpc(&request) {
            return Box::pin(std::future::ready(Ok(nothing_allowed())));
        }
        if let Some(nodes) = self.nodes.as_mut().filter(|_| remote::serves(&request)) {
            let answer = nodes.call(request);
            return Box::pin(async move {
                let mut response = answer
                    .await?
                    .map(|body| body.map_err(BoxError::from).boxed_unsync());
                // A node that applies many plans reads on when it is done.
                response.extensions_mut().insert(AtAnyPace);
                Ok(response)
            });
        }
        let grpc = self.grpc.clone();
        Box::pin(async move {
            let mut response = grpc.oneshot(request).await?;
            cors.mark(origin.as_ref(), response.headers_mut());
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        })
    }
}

/// The answer to a browser that may not call from the page that it asks for.
fn nothing_allowed() -> Response<Body> {
    let mut response = Response::new(kanat_net::body::empty());
    *response.status_mut() = http::StatusCode::NO_CONTENT;
    response
}

fn as_callers_see_it(mut response: Response<tonic::body::Body>) -> Response<tonic::body::Body> {
    grpc::status::bound_details(response.headers_mut());
    grpc::status::blame_caller_for_broken_message(response.headers_mut());
    response
}

fn is_rest(path: &str) -> bool {
    path == "/api/v1" || path.starts_with("/api/v1/") || path == OAUTH_CALLBACK
}

fn is_grpc<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(http::header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}
