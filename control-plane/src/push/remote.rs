//! The plan service for nodes of other processes: only those get in that prove themselves with everything that was set,
//! a join token, a certificate or both. Where nothing was set, nobody does.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kanat_auth::key;
use kanat_model::Secret;
use kanat_net::tls::ClientCertificate;
use kanat_proto::node::v1::plan_service_server::{PlanServiceServer, SERVICE_NAME};
use subtle::ConstantTimeEq;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::PlanStreams;

/// How nodes of other processes prove themselves.
#[derive(Clone)]
pub struct Access {
    /// SHA-256 of the join token.
    token: Option<[u8; 32]>,
    certificate: bool,
}

impl Access {
    /// Nodes know the token.
    pub fn by_token(token: &Secret<String>) -> Self {
        Self { token: Some(key::sha256(token.expose())), certificate: false }
    }

    /// Nodes show a certificate of the authority for clients.
    pub fn by_certificate() -> Self {
        Self { token: None, certificate: true }
    }

    /// Nodes show a certificate as well.
    #[must_use]
    pub fn and_certificate(self) -> Self {
        Self { certificate: true, ..self }
    }

    fn check<B>(&self, request: &Request<B>) -> Result<(), Status> {
        if self.certificate && request.extensions().get::<ClientCertificate>().is_none() {
            return Err(Status::unauthenticated("the node shows no certificate of the authority for clients"));
        }
        let Some(expected) = &self.token else { return Ok(()) };
        let header = request.headers().get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = header.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if bool::from(key::sha256(given).ct_eq(expected)) {
            return Ok(());
        }
        Err(Status::unauthenticated("the node's join token is not the control plane's"))
    }
}

/// Whether a request is for the plan service.
pub fn serves<B>(request: &Request<B>) -> bool {
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    path.strip_prefix(SERVICE_NAME).is_some_and(|rest| rest.starts_with('/'))
}

/// The plan service behind [`Access`].
#[derive(Clone)]
pub struct RemotePlans {
    access: Access,
    plans: PlanServiceServer<PlanStreams>,
}

impl RemotePlans {
    pub fn new(access: Access, plans: PlanServiceServer<PlanStreams>) -> Self {
        Self { access, plans }
    }
}

impl<B> Service<Request<B>> for RemotePlans
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<kanat_net::body::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.access.check(&request) {
            Ok(()) => Service::call(&mut self.plans, request.map(Body::new)),
            Err(status) => Box::pin(async move { Ok(status.into_http()) }),
        }
    }
}

/// The token's hash is of no use to anybody, but of no interest either.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Access");
        debug.field("token", &self.token.is_some()).field("certificate", &self.certificate).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: Option<&str>, certificate: bool) -> Request<()> {
        let mut request = Request::new(());
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        if certificate {
            request.extensions_mut().insert(ClientCertificate);
        }
        request
    }

    #[test]
    fn nodes_get_in_with_all_that_is_asked_for_and_not_with_less() {
        let token = Access::by_token(&Secret::new("join".to_owned()));
        let (certificate, both) = (Access::by_certificate(), token.clone().and_certificate());
        let may = |access: &Access, token, certificate| access.check(&request(token, certificate)).is_ok();
        assert!(may(&token, Some("join"), false));
        assert!(may(&certificate, None, true));
        assert!(may(&both, Some("join"), true));
        for (access, given, shown) in [
            (&token, None, true),
            (&token, Some("other"), true),
            (&token, Some(""), false),
            (&certificate, Some("join"), false),
            (&both, Some("join"), false),
            (&both, None, true),
        ] {
            assert!(!may(access, given, shown), "{access:?} {given:?} {shown}");
        }
    }

    #[test]
    fn only_the_plan_service_is_served() {
        let at = |path: &str| serves(&Request::builder().uri(path).body(()).unwrap());
        assert!(at("/kanat.node.v1.PlanService/Sync"));
        assert!(!at("/kanat.node.v1.PlanServiceX/Sync") && !at("/kanat.v1.FlowService/ListFlows") && !at("/"));
    }
}
