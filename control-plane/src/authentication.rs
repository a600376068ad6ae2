//! Who calls: in front of all services, from the bearer token to an [`app::Caller`](Caller) in the request's
//! extensions. Which calls need what is in `authentication/rules.rs`.

mod lasting;
mod rules;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response};
use kanat_auth::{Role, key};
use kanat_model::id::RequestId;
use kanat_model::{Code, Error, Timestamp};
use kanat_store::api_key::{self, ApiKey};
use kanat_store::environment;
use kanat_telemetry::metrics;
use tonic::body::Body;
use tower::Service;

use crate::app::environment::unknown;
use crate::app::{App, Caller};
use crate::grpc::status;
use lasting::Credentials;
pub use rules::Rules;

const ENVIRONMENT: HeaderName = HeaderName::from_static("x-environment");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// When a key was last used is written down no more often than this.
const LAST_USED_PRECISION: Duration = Duration::from_secs(60);

/// A service behind authentication.
#[derive(Clone)]
pub struct Authentication<S> {
    inner: S,
    app: Arc<App>,
    rules: Arc<Rules>,
    credentials: Credentials,
}

impl<S> Authentication<S> {
    pub fn new(inner: S, app: Arc<App>, rules: Arc<Rules>) -> Self {
        Self { inner, app, rules, credentials: Credentials::default() }
    }
}

impl<S> Service<Request<Body>> for Authentication<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // The clone takes the readiness that was polled for; the original is polled anew.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let (app, rules) = (Arc::clone(&self.app), Arc::clone(&self.rules));
        let credentials = self.credentials.clone();
        Box::pin(async move {
            let request_id = request_id(request.headers());
            let (path, begun) = (request.uri().path().to_owned(), Instant::now());
            let mut response = match admit(&app, &rules, request.uri().path(), request.headers()).await {
                Ok(None) => inner.call(request).await?,
                Ok(Some(caller)) => {
                    request.extensions_mut().insert(caller.clone());
                    let response = inner.call(request).await?;
                    if rules.lasts(&path) { credentials.bound(&app, caller, response) } else { response }
                }
                Err(error) => status::of(error).into_http(),
            };
            metrics().api_called(rules.name(&path), status::number(response.headers()), begun.elapsed());
            if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
                response.headers_mut().entry(REQUEST_ID).or_insert(value);
            }
            Ok(response)
        })
    }
}

/// The caller of a method that needs one, and may call it; none for a public method.
async fn admit(app: &App, rules: &Rules, path: &str, headers: &HeaderMap) -> Result<Option<Caller>, Error> {
    if rules.is_public(path) {
        return Ok(None);
    }
    let caller = caller(app, headers).await?;
    let needed = rules.permission(path);
    if !caller.role.allows(needed) {
        let message = format!("a key of role {} may not do this", caller.role);
        return Err(Error::new(Code::PermissionDenied, message));
    }
    Ok(Some(caller))
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Error> {
    let text = bearer(headers)?;
    let mut tx = app.store.read().await?;
    let now = Timestamp::now();
    let found = api_key::by_hash(&mut tx, &key::sha256(text)).await?;
    // A key that has expired is answered like one that never was.
    let live = found.filter(|key| key.expires_at.is_none_or(|at| now < at));
    let key = live.ok_or_else(|| unauthenticated("the API key is not known, has expired or was revoked"))?;
    let wanted = text_header(headers, &ENVIRONMENT)?;
    let environment = environment_of(&mut tx, &key, wanted).await?;
    drop(tx);
    note_use(app, &key, now).await;
    Ok(Caller {
        account_id: key.account_id,
        environment_id: environment.id,
        // A role that a newer build knows grants nothing that this one could judge.
        role: Role::parse(&key.role).unwrap_or(Role::Viewer),
        key_id: key.id,
        name: key.name,
        bound_to: key.environment_id,
        expires_at: key.expires_at,
        call: None,
    })
}

/// The environment that the request names, else the one that the key is bound to, else the account's default.
async fn environment_of(
    db: &mut kanat_store::Db,
    key: &ApiKey,
    wanted: Option<&str>,
) -> Result<environment::Environment, Error> {
    let bound = key.environment_id.as_ref();
    let found = match (wanted, bound) {
        (Some(wanted), _) => environment::find(db, &key.account_id, wanted).await?,
        (None, Some(bound)) => environment::find(db, &key.account_id, bound.as_str()).await?,
        (None, None) => environment::default(db, &key.account_id).await?,
    };
    let denied = || Error::new(Code::PermissionDenied, "this key is bound to another environment");
    match found {
        Some(found) if bound.is_some_and(|bound| *bound != found.id) => Err(denied()),
        Some(found) => Ok(found),
        None if bound.is_some() => Err(denied()),
        None => Err(unknown(db, &key.account_id, wanted.unwrap_or("default")).await?),
    }
}

/// Not being able to write it down is no reason to refuse the call.
async fn note_use(app: &App, key: &ApiKey, now: Timestamp) {
    if key.last_used_at.is_some_and(|at| now.since(at) < LAST_USED_PRECISION) {
        return;
    }
    let noted = async {
        let mut tx = app.store.begin().await?;
        api_key::used(&mut tx, &key.id, now).await?;
        tx.commit().await
    };
    if let Err(error) = noted.await {
        tracing::warn!(key.id = %key.id, error = %error, "cannot note that the key was used");
    }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Error> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or_else(|| unauthenticated("send an API key: Authorization: Bearer kanat_ak_..."))?;
    if values.next().is_some() {
        return Err(Error::field("Authorization", "is there more than once: send one credential"));
    }
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    match text {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && token.trim().starts_with(key::PREFIX) => {
            Ok(token.trim())
        }
        Some(_) | None => Err(unauthenticated("the Authorization header carries no API key: Bearer kanat_ak_...")),
    }
}

fn text_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Error> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().map_err(|_| Error::field(name.as_str(), "is not readable text"))?.trim();
    Ok((!text.is_empty()).then_some(text))
}

/// The id that the caller gave the request, when it is one that can be logged, else a new one.
fn request_id(headers: &HeaderMap) -> RequestId {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let given = given.filter(|text| (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()));
    given.map_or_else(RequestId::generate, RequestId::from)
}

fn unauthenticated(message: &str) -> Error {
    Error::new(Code::Unauthenticated, message)
}
