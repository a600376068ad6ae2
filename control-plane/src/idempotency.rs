//! `Idempotency-Key`: behind authentication and its roles, in front of the services. The first
//! request of a credential under a key runs; the same one again within a day gets its answer again,
//! without the keys that it showed; another one is refused. Only answers that say success are kept:
//! what failed may be tried again under the same key. A crash may come before the answer is kept:
//! what the call made is known by [`Caller::idempotency_id`].

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use kanat_auth::Permission;
use kanat_model::id::BootId;
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_store::answered_request::{self, AnsweredRequest};
use kanat_store::{Db, Store, control_plane, done_call};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::body::Body;

use crate::app::kept_answer::{WINDOW, seal_context};
use crate::app::{App, Caller};
use crate::authentication::Rules;
use crate::grpc::{MAX_MESSAGE_BYTES, status};
use crate::middleware::{HttpService, Middleware, Next};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks an answer that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Method that seals everything anew.
const ROTATION: &str = "/kanat.v1.SecretService/RotateSecrets";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

const MAX_KEY_BYTES: usize = 255;
/// A request that has no answer after this long was dropped by its process, which lives.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// A request whose body is read while it runs was dropped after this long without an answer.
const STREAM_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Frees the keys of requests that a former process did not answer, where there was no other one.
/// That it cannot be written is no reason not to start: the keys are free in a while.
pub async fn forget_cut_off(store: &Store) {
    let forgotten = async {
        let mut tx = store.begin().await?;
        answered_request::forget_unanswered(&mut tx).await?;
        tx.commit().await
    };
    if let Err(error) = forgotten.await {
        tracing::warn!(%error, "the idempotency keys of calls that were cut off are not free yet");
    }
}

/// Makes a change that is asked for twice happen once.
#[derive(Clone)]
pub struct Idempotency {
    app: Arc<App>,
    rules: Arc<Rules>,
}

impl Idempotency {
    pub fn new(app: Arc<App>, rules: Arc<Rules>) -> Self {
        Self { app, rules }
    }

    /// Returns whether a method changes something.
    fn changes(&self, path: &str) -> bool {
        self.rules.permission(path) != Permission::Read || self.rules.needs_identity(path)
    }

    /// Counts a call that may write sealed values. A stream writes none but its kept answer, which
    /// is sealed as it is written; a rotation waits for all others, and not for itself.
    fn counted(&self, path: &str) -> Option<TaskTrackerToken> {
        let counts =
            self.changes(path) && !self.rules.is_client_streaming(path) && path != ROTATION;
        counts.then(|| self.app.master_keys.calls.begin())
    }
}

impl Middleware for Idempotency {
    async fn handle<S: HttpService>(self, request: Request<Body>, next: Next<S>) -> Response<Body> {
        let caller = request.extensions().get::<Caller>().cloned();
        let path = request.uri().path();
        let _counted = self.counted(path);
        let key = request.headers().get(KEY).filter(|_| self.changes(path));
        let (Some(caller), Some(key)) = (caller, key.cloned()) else {
            return next.run(request).await;
        };
        let streams = self.rules.is_client_streaming(path);
        let begun = match Once::of(&self.app, &self.rules, &caller, &key, path) {
            Ok(once) if streams => once.begin_stream(request).await,
            Ok(once) => once.begin(request).await,
            Err(error) => Err(error),
        };
        match begun {
            Ok(Begun::Run(once, request)) => once.end(next.run(request).await).await,
            Ok(Begun::Answered(response)) => response,
            Err(error) => status::of(error).into_http(),
        }
    }
}

/// A request that runs under a key.
struct Once<'a> {
    app: &'a App,
    rules: &'a Rules,
    caller: &'a Caller,
    path: String,
    key: String,
    /// Fingerprint of the request: its path, its environment and its body.
    hash: Arc<Mutex<Sha256>>,
}

enum Begun<'a> {
    Run(Once<'a>, Request<Body>),
    Answered(Response<Body>),
}

impl<'a> Once<'a> {
    fn of(
        app: &'a App,
        rules: &'a Rules,
        caller: &'a Caller,
        key: &HeaderValue,
        path: &str,
    ) -> Result<Self> {
        let is_visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let key = key
            .to_str()
            .ok()
            .filter(|text| (1..=MAX_KEY_BYTES).contains(&text.len()))
            .filter(is_visible);
        let key = key.ok_or_else(|| {
            Error::field(
                "Idempotency-Key",
                "is not 1 to 255 visible ASCII characters",
            )
        })?;
        let mut hash = Sha256::new();
        for part in [caller.environment_id.as_str(), path] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let hash = Arc::new(Mutex::new(hash));
        Ok(Self {
            app,
            rules,
            caller,
            path: path.to_owned(),
            key: key.to_owned(),
            hash,
        })
    }

    /// Lets the services know the call, so that what it makes is known by it.
    fn mark(&self, parts: &mut Parts, body: &[u8]) {
        let mut hash = Sha256::new();
        for part in [
            self.caller.credential.id(),
            self.caller.environment_id.as_str(),
            &self.path,
            &self.key,
        ] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        // What a stream says is not known yet.
        hash.update(body);
        let idempotency_id = Some(URL_SAFE_NO_PAD.encode(hash.finalize()));
        parts.extensions.insert(Caller {
            idempotency_id,
            ..self.caller.clone()
        });
    }

    async fn begin(self, request: Request<Body>) -> Result<Begun<'a>> {
        let (mut parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_MESSAGE_BYTES)
            .collect()
            .await
            .map_err(|_| broken())?
            .to_bytes();
        self.mark(&mut parts, &body);
        update(&self.hash, &body);
        match self.known(Some(&self.fingerprint()), RUN_TIMEOUT).await? {
            Some(answer) => Ok(Begun::Answered(self.open(&answer)?)),
            None => Ok(Begun::Run(
                self,
                Request::from_parts(parts, Body::new(Full::new(body))),
            )),
        }
    }

    /// Begins a stream, whose fingerprint is known at its end: it is read once, by the service or,
    /// where there is an answer, here.
    async fn begin_stream(self, request: Request<Body>) -> Result<Begun<'a>> {
        let (mut parts, body) = request.into_parts();
        self.mark(&mut parts, &[]);
        let hash = Arc::clone(&self.hash);
        let mut body = body.map_frame(move |frame| {
            update(&hash, frame.data_ref().map_or(&[], |data| data));
            frame
        });
        let Some(known) = self.known(None, STREAM_TIMEOUT).await? else {
            return Ok(Begun::Run(
                self,
                Request::from_parts(parts, Body::new(body)),
            ));
        };
        while let Some(frame) = body.frame().await {
            frame.map_err(|_| broken())?;
        }
        if known.request == self.fingerprint() {
            Ok(Begun::Answered(self.open(&known)?))
        } else {
            Err(another())
        }
    }

    /// The answered request of this key, which is the same one as far as `request` tells; without
    /// one, this request is noted as running.
    async fn known(
        &self,
        request: Option<&[u8; 32]>,
        longest_run: Duration,
    ) -> Result<Option<AnsweredRequest>> {
        let now = Timestamp::now();
        let credential = self.caller.credential.id();
        let mut tx = self.app.store.begin().await?;
        let found = answered_request::get(&mut tx, credential, &self.key).await?;
        match found.filter(|found| now.since(found.created_at) < WINDOW) {
            Some(found) if request.is_some_and(|request| found.request != *request) => {
                Err(another())
            }
            Some(found) if found.answer.is_some() => Ok(Some(found)),
            Some(found)
                if now.since(found.created_at) < longest_run
                    && self.may_run(&mut tx, &found.begun_by).await? =>
            {
                Err(Error::new(
                    Code::Aborted,
                    "a request with this idempotency key is still running",
                ))
            }
            Some(_) | None => {
                let request = request.unwrap_or(&[0; 32]);
                let own = self.app.hub.control_plane_boot_id();
                answered_request::begin(&mut tx, credential, &self.key, request, own, now).await?;
                answered_request::forget_older(&mut tx, now.before(WINDOW)).await?;
                done_call::forget_older(&mut tx, now.before(WINDOW)).await?;
                tx.commit().await?;
                Ok(None)
            }
        }
    }

    /// Returns whether the control plane that began a request may still run it. Builds that kept no
    /// lease may.
    async fn may_run(&self, db: &mut Db, begun_by: &BootId) -> Result<bool> {
        let is_own = begun_by == self.app.hub.control_plane_boot_id();
        Ok(is_own || begun_by.as_str().is_empty() || control_plane::is_alive(db, begun_by).await?)
    }

    fn open(&self, known: &AnsweredRequest) -> Result<Response<Body>> {
        let sealed = known.answer.as_deref().unwrap_or_default();
        let opened = self
            .app
            .sealer
            .open(sealed, &self.seal_context())
            .map_err(|error| {
                tracing::error!(
                    %error,
                    "the answer to a request with an idempotency key cannot be opened",
                );
                Error::internal()
            })?;
        Ok(response(opened))
    }

    fn fingerprint(&self) -> [u8; 32] {
        self.hash.lock().clone().finalize().into()
    }

    /// Keeps a success under the key, and frees the key after a failure.
    async fn end(self, response: Response<Body>) -> Response<Body> {
        let (parts, body) = response.into_parts();
        let collected = match body.collect().await {
            Ok(collected) => collected,
            Err(status) => {
                self.keep(None).await;
                return status.into_http();
            }
        };
        let trailers = collected.trailers().cloned();
        let bytes = collected.to_bytes();
        let ended = trailers.as_ref().unwrap_or(&parts.headers).get(GRPC_STATUS);
        let succeeded = ended.is_some_and(|status| status == "0");
        if succeeded {
            kanat_failpoint::hit("call.done");
        }
        let kept = if succeeded {
            self.rules.without_shown_once(&self.path, &bytes)
        } else {
            None
        };
        self.keep(kept.as_ref()).await;
        Response::from_parts(parts, with_trailers(bytes, trailers))
    }

    async fn keep(&self, answer: Option<&Bytes>) {
        let credential = self.caller.credential.id();
        let key = self.key.as_str();
        let kept = async {
            let mut tx = self.app.store.begin().await?;
            match answer {
                Some(bytes) => {
                    let sealed = self.app.sealer.seal(bytes, &self.seal_context());
                    answered_request::answer(
                        &mut tx,
                        credential,
                        key,
                        &self.fingerprint(),
                        &sealed,
                    )
                    .await?;
                }
                None => answered_request::forget(&mut tx, credential, key).await?,
            }
            tx.commit().await
        };
        if let Err(error) = kept.await {
            tracing::warn!(
                %error,
                "the answer to a request with an idempotency key cannot be kept",
            );
        }
    }

    fn seal_context(&self) -> String {
        seal_context(self.caller.credential.id(), &self.key)
    }
}

fn update(hash: &Mutex<Sha256>, bytes: &[u8]) {
    hash.lock().update(bytes);
}

fn broken() -> Error {
    Error::field("", "the request broke off or is too large")
}

fn another() -> Error {
    Error::new(
        Code::Aborted,
        "this idempotency key was used for another request",
    )
}

/// A success with this message, given again.
fn response(message: Vec<u8>) -> Response<Body> {
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]);
    let mut response = Response::new(with_trailers(message.into(), Some(trailers)));
    let grpc = HeaderValue::from_static("application/grpc");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, grpc);
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn with_trailers(bytes: Bytes, trailers: Option<HeaderMap>) -> Body {
    Body::new(Full::new(bytes).with_trailers(async move { trailers.map(Ok) }))
}
