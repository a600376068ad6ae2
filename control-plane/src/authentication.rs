//! Authentication in front of all services: from the bearer token to an [`app::Caller`](Caller) in
//! the request's extensions, before a byte of the body is read. The permissions of the methods are
//! in `authentication/rules.rs`. A call of a public method is bounded to 64 KiB and
//! read whole before it goes on, so that it takes nothing of the memory that callers share.

mod credential;
mod lasting;
mod places;
mod rules;
mod wrong_keys;

use std::sync::Arc;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, Response};
use kanat_gateway::PathVariables;
use kanat_model::audit::Via;
use kanat_model::id::{AccountId, RequestId};
use kanat_model::{Code, Error, Result};
use kanat_net::{Pacing, Peer};
use kanat_store::environment::{self, Environment};
use kanat_telemetry::metrics;
use tokio::sync::OnceCell;
use tonic::Status;
use tonic::body::Body;

use crate::app::audit::{Action, AuditContext, denied};
use crate::app::environment::unknown;
use crate::app::{App, Caller, Credential, member};
use crate::grpc::status;
use crate::middleware::{HttpService, Middleware, Next};
use crate::request;
use credential::Presented;
use lasting::CredentialCache;
use places::{Holder, Kind, Places};
pub use rules::Rules;
use wrong_keys::WrongKeys;

const ENVIRONMENT: HeaderName = HeaderName::from_static("x-environment");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Lets in callers with a credential that may do what they ask for.
#[derive(Clone)]
pub struct Authentication {
    app: Arc<App>,
    rules: Arc<Rules>,
    credential_cache: CredentialCache,
    places: Places,
    wrong_keys: WrongKeys,
    account: Arc<OnceCell<AccountId>>,
}

impl Authentication {
    pub fn new(app: Arc<App>, rules: Arc<Rules>) -> Self {
        Self {
            app,
            rules,
            credential_cache: CredentialCache::default(),
            places: Places::default(),
            wrong_keys: WrongKeys::default(),
            account: Arc::default(),
        }
    }

    /// Serves a request if its caller may call the method.
    async fn serve<S: HttpService>(
        &self,
        path: &str,
        request: Request<Body>,
        next: Next<S>,
        known: &mut Option<Caller>,
    ) -> Result<Response<Body>, Status> {
        let peer = request.extensions().get::<Peer>().copied();
        let peer = peer.as_ref();
        let kind = if self.rules.is_server_streaming(path) {
            Kind::Stream
        } else {
            Kind::Call
        };
        let headers = request.headers();
        let caller = self.authorize(path, headers, peer, known).await;
        let caller = caller.map_err(status::of)?;
        let holder = match &caller {
            Some(caller) => Some(Holder::Caller(caller.credential.clone())),
            None => peer.map(|peer| Holder::Stranger(peer.network())),
        };
        let place = holder.map(|holder| self.places.take(holder, kind));
        let place = place.transpose().map_err(status::of)?;
        let request = attach_caller(request, caller.as_ref(), &self.rules).await?;
        let response = next.run(request).await;
        Ok(match kind {
            Kind::Stream => self
                .credential_cache
                .end_with_credential(&self.app, caller, place, response),
            Kind::Call => response,
        })
    }

    /// Returns the caller of a method that needs one, and may call it; `None` for a public method.
    async fn authorize(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<&Peer>,
        known: &mut Option<Caller>,
    ) -> Result<Option<Caller>> {
        if self.rules.public_request_limit(path).is_some() {
            return Ok(None);
        }
        let (caller, environment) = self.authenticate(path, headers, peer, known).await?;
        let is_person = matches!(caller.credential, Credential::Person(_));
        if self.rules.needs_identity(path) && !is_person {
            return Err(member::accepted_by_people());
        }
        let role = caller.role;
        if !role.allows(self.rules.permission(path)) {
            let message = format!("a {} of role {role} may not do this", caller.noun());
            return Err(Error::new(Code::PermissionDenied, message));
        }
        if environment.is_protected && !role.allows(self.rules.permission_where_protected(path)) {
            let message = format!(
                "environment {:?} is protected: a {} of role {role} may run and test what is in \
                 it, and change nothing",
                environment.name,
                caller.noun()
            );
            return Err(Error::new(Code::PermissionDenied, message));
        }
        Ok(Some(caller))
    }

    /// Returns the caller and the environment of the call. `known` gets the caller as soon as the
    /// credential is verified, even if the call is refused later.
    async fn authenticate(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<&Peer>,
        known: &mut Option<Caller>,
    ) -> Result<(Caller, Environment)> {
        let needs_identity = self.rules.needs_identity(path);
        let mut found = match credential::presented(headers)? {
            Presented::Key(text) => self.by_key(text, peer).await?,
            Presented::Token(token) if needs_identity => self.person(token, known).await?,
            Presented::Token(token) => self.member(token, known).await?,
        };
        let caller = known.insert(found.caller.clone());
        let wanted = text_header(headers, &ENVIRONMENT)?;
        let environment = environment_of(&mut found.tx, caller, wanted).await?;
        caller.environment_id = environment.id.clone();
        found.note_use(&self.app).await;
        Ok((caller.clone(), environment))
    }

    /// Returns what the audit entry of a call shows beside its caller.
    fn audit_context(
        &self,
        path: &str,
        request: &Request<Body>,
        id: &RequestId,
    ) -> Option<AuditContext> {
        let action = Action::of_method(path)?;
        let agent = request.headers().get(USER_AGENT);
        let is_cli = agent.is_some_and(|agent| agent.as_bytes().starts_with(b"kanat/"));
        let peer = request.extensions().get::<Peer>();
        let is_audited = action.is_audited(path, self.rules.permission(path));
        let mut audit_context = AuditContext::new(action, if is_cli { Via::Cli } else { Via::Api });
        audit_context.is_audited = is_audited;
        audit_context.request_id = Some(id.to_string());
        audit_context.address = peer.map(|peer| peer.address);
        Some(audit_context)
    }
}

impl Middleware for Authentication {
    async fn handle<S: HttpService>(
        self,
        mut request: Request<Body>,
        next: Next<S>,
    ) -> Response<Body> {
        let request_id = request_id(request.headers());
        let path = request.uri().path().to_owned();
        let begun = Instant::now();
        let audit_context = self.audit_context(&path, &request, &request_id);
        let entity_id = entity_id(request.extensions().get::<PathVariables>());
        if let Some(audit_context) = audit_context.clone() {
            request.extensions_mut().insert(audit_context);
        }
        let mut known = None;
        let answered = self.serve(&path, request, next, &mut known).await;
        let mut response = answered.unwrap_or_else(Status::into_http);
        if status::number(response.headers()) == tonic::Code::PermissionDenied as u16
            && let (Some(caller), Some(audit_context)) = (&known, &audit_context)
        {
            denied::denied(&self.app, caller, audit_context, entity_id).await;
        }
        metrics().api_called(
            self.rules.name(&path),
            status::number(response.headers()),
            begun.elapsed(),
        );
        if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
            response.headers_mut().entry(REQUEST_ID).or_insert(value);
        }
        response
    }
}

/// Returns the id of what the path of a request names.
fn entity_id(path: Option<&PathVariables>) -> Option<String> {
    let path = path?;
    let id = path.get("key_id").or_else(|| path.get("id"));
    id.map(str::to_owned)
}

/// Adds the caller to the request. Without a caller, reads the whole body within the limit of the
/// public method.
async fn attach_caller(
    mut request: Request<Body>,
    caller: Option<&Caller>,
    rules: &Rules,
) -> Result<Request<Body>, Status> {
    let path = request.uri().path();
    let Some(caller) = caller else {
        let limit = rules.public_request_limit(path).unwrap_or_default();
        return request::whole(request, limit).await;
    };
    if let Some(pacing) = request.extensions().get::<Pacing>()
        && rules.is_client_streaming(path)
    {
        pacing.end();
    }
    request.extensions_mut().insert(caller.clone());
    Ok(request)
}

/// The environment that the request names, else the one that the key is bound to, else the
/// account's default.
async fn environment_of(
    db: &mut kanat_store::Db,
    caller: &Caller,
    wanted: Option<&str>,
) -> Result<Environment> {
    let bound = caller.bound_to.as_ref();
    let found = match (wanted, bound) {
        (Some(wanted), _) => environment::find(db, &caller.account_id, wanted).await?,
        (None, Some(bound)) => environment::find(db, &caller.account_id, bound.as_str()).await?,
        (None, None) => environment::default(db, &caller.account_id).await?,
    };
    let denied = || {
        Error::new(
            Code::PermissionDenied,
            "this key is bound to another environment",
        )
    };
    match found {
        Some(found) if bound.is_some_and(|bound| *bound != found.id) => Err(denied()),
        Some(found) => Ok(found),
        None if bound.is_some() => Err(denied()),
        None => Err(unknown(db, &caller.account_id, wanted.unwrap_or("default")).await?),
    }
}

fn text_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Error::field(name.as_str(), "is there more than once"));
    }
    let text = str::from_utf8(value.as_bytes())
        .map_err(|_| Error::field(name.as_str(), "is not readable text"))?
        .trim();
    Ok((!text.is_empty()).then_some(text))
}

/// The id that the caller gave the request, when it is one that can be logged, else a new one.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let given = given.filter(|text| {
        (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
    });
    given.map_or_else(RequestId::generate, RequestId::from)
}

fn unauthenticated(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body::Frame;
    use kanat_auth::Role;
    use kanat_net::Peer;
    use tower::ServiceExt;

    use super::*;
    use crate::app::testing;
    use crate::middleware::MiddlewareService;

    const LIST: &str = "/kanat.v1.FlowService/ListFlows";

    /// Returns the number of the gRPC status that a call from this address gets.
    async fn call<S: HttpService>(
        service: &MiddlewareService<Authentication, S>,
        key: &str,
        peer: Option<&str>,
    ) -> u16 {
        let request = Request::post(LIST).header("authorization", format!("Bearer {key}"));
        let mut request = request.body(Body::empty()).unwrap();
        if let Some(address) = peer {
            request.extensions_mut().insert(Peer {
                address: address.parse().unwrap(),
                is_encrypted: false,
            });
        }
        status::number(service.clone().oneshot(request).await.unwrap().headers())
    }

    #[tokio::test]
    async fn a_right_key_passes_where_wrong_ones_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let app = Arc::new(testing::in_folder(folder.path()).await);
        let owner = testing::call(&app, Role::Owner).await;
        let rules = Arc::new(Rules::read(&kanat_proto::DESCRIPTORS).unwrap());
        let authentication = Authentication::new(Arc::clone(&app), rules);
        let wrong_keys = authentication.wrong_keys.clone();
        let service = authentication.layer(tower::service_fn(done));
        let new = |name: &str| crate::app::api_key::NewApiKey {
            name: name.to_owned(),
            role: None,
            environment: None,
            expires_at: None,
        };
        let make = async |name: &str| {
            let (_, text) = crate::app::api_key::create(&owner, new(name))
                .await
                .unwrap();
            text.unwrap().expose().clone()
        };
        let right = make("right").await;
        let address = "192.0.2.1";
        let wrong = "kanat_ak_wrong";
        let unauthenticated = tonic::Code::Unauthenticated as u16;
        let limited = tonic::Code::ResourceExhausted as u16;
        assert_eq!(call(&service, wrong, Some(address)).await, unauthenticated);
        // The rest of its wrong keys, at once.
        let rest = || {
            while let Some(judgement) = wrong_keys.begin(address.parse().unwrap()) {
                judgement.wrong();
            }
        };
        rest();
        assert_eq!(call(&service, wrong, Some(address)).await, limited);
        assert_eq!(call(&service, &right, Some(address)).await, 0);
        let young = make("young").await;
        rest();
        assert_eq!(call(&service, &young, Some(address)).await, 0);
        assert_eq!(
            call(&service, wrong, Some("192.0.2.2")).await,
            unauthenticated
        );
        assert_eq!(call(&service, wrong, None).await, unauthenticated);
    }

    async fn done(_: Request<Body>) -> Result<Response<Body>, Infallible> {
        Ok(Status::ok("").into_http())
    }

    #[tokio::test]
    async fn a_stranger_asks_little_and_at_the_pace_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let app = Arc::new(testing::in_folder(folder.path()).await);
        let rules = Arc::new(Rules::read(&kanat_proto::DESCRIPTORS).unwrap());
        let service = Authentication::new(Arc::clone(&app), rules).layer(tower::service_fn(done));
        let (sender, body) = tokio::sync::mpsc::unbounded_channel::<Result<_, Status>>();
        let stream = tokio_stream::wrappers::UnboundedReceiverStream::new(body);
        let request = Request::post("/grpc.health.v1.Health/Check");
        let body = Body::new(http_body_util::StreamBody::new(stream));
        let mut request = request.body(body).unwrap();
        let pacing = Pacing::default();
        request.extensions_mut().insert(pacing.clone());
        let mut answer = Box::pin(service.oneshot(request));
        let piece = || Ok(Frame::data(bytes::Bytes::from_static(&[0; 1000])));
        sender.send(piece()).unwrap();
        assert!(futures::poll!(answer.as_mut()).is_pending());
        sender.send(piece()).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(
            status::number(answer.headers()),
            tonic::Code::InvalidArgument as u16
        );
        assert!(!pacing.has_ended());
    }

    #[tokio::test]
    async fn streams_of_callers_come_at_any_pace_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let app = Arc::new(testing::in_folder(folder.path()).await);
        let owner = testing::call(&app, Role::Owner).await;
        let key = crate::app::api_key::NewApiKey {
            name: "streams".to_owned(),
            role: None,
            environment: None,
            expires_at: None,
        };
        let (_, key) = crate::app::api_key::create(&owner, key).await.unwrap();
        let key = format!("Bearer {}", key.unwrap().expose());
        let rules = Arc::new(Rules::read(&kanat_proto::DESCRIPTORS).unwrap());
        let service = Authentication::new(Arc::clone(&app), rules).layer(tower::service_fn(done));
        for (path, key, expected) in [
            (LIST, key.as_str(), false),
            ("/kanat.v1.MessageService/StreamMessages", &key, false),
            ("/kanat.v1.BatchJobService/CreateBatchJob", &key, true),
            (
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                &key,
                true,
            ),
            (
                "/kanat.v1.BatchJobService/CreateBatchJob",
                "Bearer x",
                false,
            ),
            ("/grpc.health.v1.Health/Watch", &key, false),
        ] {
            let pacing = Pacing::default();
            let request = Request::post(path).header("authorization", key);
            let mut request = request.body(Body::empty()).unwrap();
            request.extensions_mut().insert(pacing.clone());
            service.clone().oneshot(request).await.unwrap();
            assert_eq!(pacing.has_ended(), expected, "{path} with {key}");
        }
    }
}
