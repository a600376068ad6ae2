//! The gateway: turns an HTTP request into its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Extensions, Method, Request, Response, StatusCode};
use http_body::Body as _;
use kanat_net::body::{self, BoxError};
use kanat_net::budget::Budget;
use kanat_net::{Body, request_id};
use prost_reflect::DescriptorPool;

use crate::call::Call;
use crate::error::Problem;
use crate::input::Incoming;
use crate::route::{RouteMatch, Router};
use crate::{answer, header, sse};

/// Bounds and intervals.
#[derive(Debug, Clone)]
pub struct Options {
    /// Greatest size of a JSON body, in bytes.
    pub body_limit: usize,
    /// Greatest size of an uploaded file, in bytes.
    pub upload_limit: usize,
    /// Greatest size of a body that is handed on while it arrives, in bytes. Each item of its list
    /// is bounded by `body_limit`.
    pub stream_limit: u64,
    /// Time after which a comment is sent on a stream of events without an event.
    pub heartbeat: Duration,
    /// Memory for all bodies that are being read or answered. A request whose body has no room is
    /// answered 503.
    pub memory: Arc<Budget>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            body_limit: 1 << 20,
            upload_limit: 16 << 20,
            stream_limit: 4 << 30,
            heartbeat: Duration::from_secs(15),
            memory: Budget::new(256 << 20),
        }
    }
}

/// Error of descriptors that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the REST form of {method} is wrong: {reason}")]
    Method { method: String, reason: String },
}

/// REST route, for documents and tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    pub method: Method,
    /// Path template, such as `/api/v1/flows/{id}`.
    pub path: String,
    /// Full name of the method, such as `kanat.v1.FlowService/GetFlow`.
    pub grpc_method: String,
    /// Needs no credential.
    pub public: bool,
}

/// Variables of the path of a request, by the names of their fields. Calls carry them in their
/// extensions: a service may refuse a call before it reads the message.
#[derive(Debug, Clone, Default)]
pub struct PathVariables(Vec<(String, String)>);

impl PathVariables {
    /// Returns the value of the variable of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// REST gateway to the gRPC services of `S`.
#[derive(Clone)]
pub struct Gateway<S> {
    router: Arc<Router>,
    grpc: S,
    options: Options,
}

impl<S> Gateway<S>
where
    S: tower::Service<
            Request<tonic::body::Body>,
            Response = Response<tonic::body::Body>,
            Error = Infallible,
        > + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    /// Reads the routes from `descriptors`; `grpc` answers the calls.
    ///
    /// # Errors
    /// The gateway does not support the annotations of a method.
    pub fn new(descriptors: &DescriptorPool, grpc: S) -> Result<Self, Error> {
        Ok(Self {
            router: Arc::new(Router::new(descriptors)?),
            grpc,
            options: Options::default(),
        })
    }

    /// Sets other bounds.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Returns every route, in the order of the descriptor set.
    pub fn routes(&self) -> Vec<RouteInfo> {
        let info = |route: &crate::route::Route| RouteInfo {
            method: route.method.clone(),
            path: route.template.text().to_owned(),
            grpc_method: route.rpc.name.clone(),
            public: route.rpc.rest.public,
        };
        self.router
            .routes()
            .iter()
            .map(|route| info(route))
            .collect()
    }

    /// Answers one request. Never fails, whatever the bytes are.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut parts, body) = request.into_parts();
        let request_id = request_id::of(&parts.headers);
        let extensions = std::mem::take(&mut parts.extensions);
        let parts = Arc::new(parts);
        let mut response = match self
            .answer(&parts, extensions, Box::pin(body), &request_id)
            .await
        {
            Ok(response) => response,
            Err(problem) => problem.respond(request_id.to_str().unwrap_or_default()),
        };
        response
            .headers_mut()
            .insert(request_id::HEADER, request_id);
        let nosniff = HeaderName::from_static("x-content-type-options");
        response
            .headers_mut()
            .insert(nosniff, HeaderValue::from_static("nosniff"));
        if parts.method == Method::HEAD {
            without_body(response)
        } else {
            response
        }
    }

    async fn answer<B>(
        &self,
        parts: &Arc<Parts>,
        mut extensions: Extensions,
        body: B,
        request_id: &HeaderValue,
    ) -> Result<Response<Body>, Problem>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let (route, variables) = match self.router.find(&parts.method, parts.uri.path())? {
            RouteMatch::Route { route, variables } => (route, variables),
            RouteMatch::Options(methods) => return Ok(options(&methods)),
        };
        let rpc = Arc::clone(&route.rpc);
        // Who brings no credential at all is sent away before anything of the request is read.
        if !rpc.rest.public && !parts.headers.contains_key(AUTHORIZATION) {
            return Err(Problem::unauthenticated());
        }
        let named = variables
            .iter()
            .map(|(field, text)| (field.name().to_owned(), text.clone()));
        extensions.insert(PathVariables(named.collect()));
        let incoming = Incoming {
            route,
            variables,
            parts: Arc::clone(parts),
            body,
            options: self.options.clone(),
        };
        // The service judges the caller by the headers, and reads the body after that.
        let (request, reading) = incoming.frames();
        extensions.insert(reading.held());
        let metadata = header::to_metadata(&parts.headers, request_id);
        let call = Call {
            uri: rpc.uri.clone(),
            metadata,
            extensions,
            request,
        };
        // Of a body that broke off while the service read it, the service knows only that it did.
        let failed = |status| {
            reading
                .refusal()
                .unwrap_or_else(|| Problem::of_status(&status, &rpc.input))
        };
        let answer = call.start(self.grpc.clone()).await.map_err(failed)?;
        if rpc.streams {
            let request_id = request_id.to_str().unwrap_or_default().to_owned();
            return Ok(sse::stream(answer, rpc, self.options.heartbeat, request_id));
        }
        answer::unary(answer, &rpc, &parts.method, &parts.headers)
            .await
            .map_err(failed)
    }
}

fn options(methods: &[Method]) -> Response<Body> {
    let mut response = Response::new(body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(ALLOW, names);
    }
    response
}

/// Drops the body of an answer to `HEAD` and keeps its length, where that is known.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact() {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = body::empty();
    response
}
