//! The plan service for nodes of other processes. A node is admitted with the credentials that are
//! set: a join token, a certificate, both, or those of a binding. If none is set, no node is
//! admitted.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kanat_auth::key;
use kanat_model::Secret;
use kanat_net::Pacing;
use kanat_net::body::IncomingBody;
use kanat_net::tls::ClientCertificate;
use kanat_proto::node::v1::plan_service_server::{PlanServiceServer, SERVICE_NAME};
use subtle::ConstantTimeEq;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use super::PlanStreamService;
use super::grant::{Credentials, Grant};

/// Checks the credentials of nodes of other processes.
#[derive(Clone)]
pub struct NodeAuthenticator {
    /// SHA-256 of the join token that opens every environment.
    token: Option<[u8; 32]>,
    /// True if every node needs a certificate.
    requires_certificate: bool,
    bound: Vec<BoundNode>,
}

/// Nodes that may serve some environments.
#[derive(Clone)]
pub struct BoundNode {
    pub credential: BoundCredential,
    /// Ids or names.
    pub environments: Vec<String>,
}

/// Credential of bound nodes.
#[derive(Clone)]
pub enum BoundCredential {
    /// Join token with this SHA-256.
    Token([u8; 32]),
    /// Certificate of the authority for clients that is of this DNS name.
    Certificate(String),
}

impl NodeAuthenticator {
    /// Admits nodes with the token.
    pub fn by_token(token: &Secret<String>) -> Self {
        Self {
            token: Some(key::sha256(token.expose())),
            requires_certificate: false,
            bound: Vec::new(),
        }
    }

    /// Admits nodes with a certificate of the authority for clients.
    pub fn by_certificate() -> Self {
        Self {
            token: None,
            requires_certificate: true,
            bound: Vec::new(),
        }
    }

    /// Requires a certificate as well.
    #[must_use]
    pub fn and_certificate(self) -> Self {
        Self {
            requires_certificate: true,
            ..self
        }
    }

    /// Admits bound nodes alone: none before [`Self::and_bound`].
    pub fn by_binding() -> Self {
        Self {
            token: None,
            requires_certificate: false,
            bound: Vec::new(),
        }
    }

    /// Adds bindings: a node that shows one of these credentials may serve the environments of that
    /// binding only. Once there are bindings, a certificate without one does not suffice: the node
    /// needs the join token.
    #[must_use]
    pub fn and_bound(self, bound: Vec<BoundNode>) -> Self {
        Self { bound, ..self }
    }

    /// Returns the grant of a node: the environments that all of its bindings allow, or every one
    /// if it has none.
    fn check<B>(&self, request: &Request<B>) -> Result<Grant, Status> {
        let certificate = request.extensions().get::<ClientCertificate>();
        if self.requires_certificate && certificate.is_none() {
            return Err(Status::unauthenticated(
                "the node shows no certificate of the authority for clients",
            ));
        }
        let header = request
            .headers()
            .get(http::header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let given = key::sha256(
            header
                .and_then(|value| value.strip_prefix("Bearer "))
                .unwrap_or_default(),
        );
        let is_bound_by_token = |bound: &&BoundNode| match &bound.credential {
            BoundCredential::Token(expected) => bool::from(given.ct_eq(expected)),
            BoundCredential::Certificate(_) => false,
        };
        let is_bound_by_certificate = |bound: &&BoundNode| match &bound.credential {
            BoundCredential::Token(_) => false,
            BoundCredential::Certificate(name) => {
                certificate.is_some_and(|certificate| certificate.is_of(name))
            }
        };
        let by_token: Vec<_> = self.bound.iter().filter(is_bound_by_token).collect();
        let by_certificate: Vec<_> = self.bound.iter().filter(is_bound_by_certificate).collect();
        let knows_token = self
            .token
            .is_some_and(|expected| bool::from(given.ct_eq(&expected)));
        if self.token.is_some() && by_token.is_empty() && !knows_token {
            return Err(Status::unauthenticated(
                "the node's join token is not the control plane's",
            ));
        }
        let is_known = knows_token
            || !by_token.is_empty()
            || !by_certificate.is_empty()
            || (self.bound.is_empty() && self.requires_certificate);
        if !is_known {
            return Err(Status::unauthenticated(
                "the node shows no join token and no certificate that this control plane admits",
            ));
        }
        let is_by_token = knows_token || !by_token.is_empty();
        let bound = by_token.into_iter().chain(by_certificate);
        Ok(Grant {
            restrictions: bound.map(|bound| bound.environments.clone()).collect(),
            credentials: Some(Credentials {
                token: is_by_token.then_some(given),
                certificate: certificate.cloned(),
            }),
        })
    }
}

/// Returns whether a request is for the plan service.
pub fn serves<B>(request: &Request<B>) -> bool {
    let path = request.uri().path().strip_prefix('/').unwrap_or_default();
    path.strip_prefix(SERVICE_NAME)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// The plan service behind [`NodeAuthenticator`].
#[derive(Clone)]
pub struct RemotePlanService {
    access: NodeAuthenticator,
    plans: PlanServiceServer<PlanStreamService>,
}

impl RemotePlanService {
    pub fn new(access: NodeAuthenticator, plans: PlanServiceServer<PlanStreamService>) -> Self {
        Self { access, plans }
    }
}

impl<B> Service<Request<B>> for RemotePlanService
where
    B: IncomingBody + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.access.check(&request) {
            Ok(grant) => {
                request.extensions_mut().insert(grant);
                if let Some(pacing) = request.extensions().get::<Pacing>() {
                    pacing.end();
                }
                Service::call(&mut self.plans, request.map(Body::new))
            }
            Err(status) => Box::pin(async move { Ok(status.into_http()) }),
        }
    }
}

/// Leaves out the token's hash, which is not secret, but useless in a log.
impl std::fmt::Debug for NodeAuthenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("NodeAuthenticator");
        debug
            .field("token", &self.token.is_some())
            .field("requires_certificate", &self.requires_certificate);
        debug.field("bound", &self.bound.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(token: Option<&str>, certificate: bool) -> Request<()> {
        let mut request = Request::new(());
        if let Some(token) = token {
            request
                .headers_mut()
                .insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        if certificate {
            request
                .extensions_mut()
                .insert(ClientCertificate::new(["node-1.example.com".to_owned()]));
        }
        request
    }

    #[test]
    fn nodes_get_in_with_all_that_is_asked_for_and_not_with_less() {
        let token = NodeAuthenticator::by_token(&Secret::new("join".to_owned()));
        let certificate = NodeAuthenticator::by_certificate();
        let both = token.clone().and_certificate();
        let may = |access: &NodeAuthenticator, token, certificate| {
            access.check(&request(token, certificate)).is_ok()
        };
        assert!(!may(&NodeAuthenticator::by_binding(), Some("join"), true));
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
        assert!(
            !at("/kanat.node.v1.PlanServiceX/Sync")
                && !at("/kanat.v1.FlowService/ListFlows")
                && !at("/")
        );
    }

    fn bound(credential: BoundCredential, environments: &[&str]) -> BoundNode {
        BoundNode {
            credential,
            environments: environments.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_bound_node_gets_in_for_its_environments_alone() {
        let by_token = || {
            bound(
                BoundCredential::Token(key::sha256("of-staging")),
                &["staging", "env_2"],
            )
        };
        let by_certificate = || {
            bound(
                BoundCredential::Certificate("Node-1.example.com".to_owned()),
                &["staging"],
            )
        };
        let of_another = || {
            bound(
                BoundCredential::Certificate("node-2.example.com".to_owned()),
                &["production"],
            )
        };
        let allowed = |access: &NodeAuthenticator, token, certificate| {
            let grant = access
                .check(&request(token, certificate))
                .map_err(|status| status.code());
            grant.map(|grant| {
                let all = [
                    ("env_1", "production"),
                    ("env_2", "staging"),
                    ("env_3", "development"),
                ];
                all.into_iter()
                    .filter(|(id, name)| grant.allows(id, name))
                    .map(|(_, name)| name)
                    .collect::<Vec<_>>()
            })
        };
        let refused = Err(tonic::Code::Unauthenticated);
        let everything = Ok(vec!["production", "staging", "development"]);
        let staging = Ok(vec!["staging"]);

        let tokens = NodeAuthenticator::by_binding().and_bound(vec![by_token()]);
        assert_eq!(allowed(&tokens, Some("of-staging"), false), staging);
        assert_eq!(allowed(&tokens, Some("other"), true), refused);
        assert_eq!(allowed(&tokens, None, false), refused);

        let grant = |access: &NodeAuthenticator, token, certificate| {
            access.check(&request(token, certificate)).unwrap()
        };
        let of_staging = grant(&tokens, Some("of-staging"), false);
        assert!(of_staging.may_replace(&of_staging.clone()));

        let beside = NodeAuthenticator::by_token(&Secret::new("join".to_owned()))
            .and_bound(vec![by_token(), by_certificate()]);
        assert_eq!(allowed(&beside, Some("join"), false), everything);
        assert_eq!(allowed(&beside, Some("join"), true), staging);
        assert_eq!(allowed(&beside, Some("of-staging"), false), staging);
        assert_eq!(allowed(&beside, None, true), refused);

        let of_all = grant(&beside, Some("join"), false);
        let own = Grant::default();
        for [one, other] in [[&of_staging, &of_all], [&of_all, &of_staging]] {
            assert!(!one.may_replace(other) && !one.may_replace(&own) && own.may_replace(one));
        }

        let certificates =
            NodeAuthenticator::by_certificate().and_bound(vec![by_certificate(), by_token()]);
        assert_eq!(allowed(&certificates, None, true), staging);
        assert_eq!(allowed(&certificates, Some("of-staging"), false), refused);
        let others = NodeAuthenticator::by_certificate().and_bound(vec![of_another()]);
        assert_eq!(allowed(&others, None, true), refused);

        let apart = NodeAuthenticator::by_certificate().and_bound(vec![
            by_certificate(),
            bound(
                BoundCredential::Token(key::sha256("of-production")),
                &["production"],
            ),
        ]);
        assert_eq!(
            allowed(&apart, Some("of-production"), true),
            Ok(vec![]),
            "what all ways allow"
        );
    }
}
