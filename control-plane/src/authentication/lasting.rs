//! Streams do not outlive the credential that opened them: one that is revoked, has expired or was
//! lowered ends its streams within a second.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Response};
use http_body::Frame;
use kanat_auth::Role;
use kanat_model::id::ApiKeyId;
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_store::api_key::{self, ApiKey};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tonic::Status;
use tonic::body::Body;

use super::places::Place;
use super::unauthenticated;
use crate::app::{App, Caller};
use crate::grpc::status;

/// Interval at which a stream checks its credential.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Time for which a credential that was read serves all of its streams.
const CACHE_TIME: Duration = Duration::from_millis(250);

/// Credentials that have streams, as they were last read.
#[derive(Clone, Default)]
pub struct Credentials(Arc<Mutex<HashMap<ApiKeyId, Reading>>>);

struct Reading {
    at: Instant,
    /// `None` once the key is revoked.
    key: Option<ApiKey>,
}

impl Credentials {
    /// The answer as long as the caller's credential lasts, where there is one; it has its place
    /// until it ends.
    pub fn bound(
        &self,
        app: &Arc<App>,
        caller: Option<Caller>,
        place: Option<Place>,
        response: Response<Body>,
    ) -> Response<Body> {
        let credentials = self.clone();
        let app = Arc::clone(app);
        let end = match caller {
            Some(caller) => async move { status::of(credentials.end(&app, &caller).await) }.boxed(),
            None => futures::future::pending().boxed(),
        };
        response.map(|body| {
            Body::new(BoundBody {
                body,
                end: Some(end),
                _place: place,
            })
        })
    }

    /// Waits for the end of the credential; says why it does not hold any more.
    async fn end(&self, app: &App, caller: &Caller) -> Error {
        let mut changes = app.store.changes();
        loop {
            let expires_at = match self.read(app, caller).await {
                Ok(None) => return unauthenticated("the API key was revoked"),
                Ok(Some(key)) => match judge(caller, &key, Timestamp::now()) {
                    Ok(()) => key.expires_at,
                    Err(error) => return error,
                },
                // A store that does not answer revokes nothing, either.
                Err(error) => {
                    tracing::warn!(
                        %error,
                        key.id = %caller.key_id,
                        "cannot see whether a key that has a stream holds",
                    );
                    None
                }
            };
            let left = expires_at.map_or(Duration::MAX, |at| at.since(Timestamp::now()));
            tokio::select! {
                () = changes.next(CHECK_INTERVAL) => {}
                () = sleep(left) => {}
            }
        }
    }

    async fn read(&self, app: &App, caller: &Caller) -> Result<Option<ApiKey>> {
        if let Some(found) = self
            .0
            .lock()
            .get(&caller.key_id)
            .filter(|reading| reading.at.elapsed() < CACHE_TIME)
        {
            return Ok(found.key.clone());
        }
        let key = api_key::get(
            &mut *app.store.read().await?,
            &caller.account_id,
            &caller.key_id,
        )
        .await?;
        let mut readings = self.0.lock();
        readings.retain(|_, reading| reading.at.elapsed() < CACHE_TIME);
        readings.insert(
            caller.key_id.clone(),
            Reading {
                at: Instant::now(),
                key: key.clone(),
            },
        );
        Ok(key)
    }
}

/// Errors when the key allows less than it did when the stream began.
fn judge(caller: &Caller, key: &ApiKey, now: Timestamp) -> Result<()> {
    if key.expires_at.is_some_and(|at| now >= at) {
        return Err(unauthenticated("the API key has expired"));
    }
    let role = Role::parse(&key.role).unwrap_or(Role::Viewer);
    if role != caller.role && !role.may_grant(caller.role) {
        return Err(Error::new(
            Code::PermissionDenied,
            "the role of the API key was lowered",
        ));
    }
    if key.environment_id != caller.bound_to {
        return Err(Error::new(
            Code::PermissionDenied,
            "the API key was bound to another environment",
        ));
    }
    Ok(())
}

/// A body that ends with its credential.
struct BoundBody {
    body: Body,
    /// Why it ends; taken once it has.
    end: Option<BoxFuture<'static, Status>>,
    _place: Option<Place>,
}

impl http_body::Body for BoundBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(end) = &mut this.end else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(status) = end.poll_unpin(cx) {
            this.end = None;
            this.body = Body::empty();
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(
                status
                    .add_header(&mut trailers)
                    .map(|()| Frame::trailers(trailers)),
            ));
        }
        Pin::new(&mut this.body).poll_frame(cx)
    }

    // An error is an answer of headers alone. Where their end is not told, an empty DATA frame
    // follows, which gRPC's clients take for a broken stream.
    fn is_end_stream(&self) -> bool {
        self.end.is_none() || self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use kanat_model::id::{AccountId, EnvironmentId};

    use super::*;
    use crate::authentication::places::{Holder, Kind, Places};

    #[test]
    fn an_answer_of_headers_alone_is_at_its_end() {
        let key = Holder::Key(ApiKeyId::from("key_1"));
        let place = Places::default().take(key, Kind::Stream).unwrap();
        let end = Some(futures::future::pending().boxed());
        assert!(http_body::Body::is_end_stream(&BoundBody {
            body: Body::empty(),
            end,
            _place: Some(place)
        }));
    }

    #[test]
    fn a_key_that_allows_less_than_before_ends_its_streams() {
        let caller = Caller {
            account_id: AccountId::from("acc_1"),
            environment_id: EnvironmentId::from("env_1"),
            role: Role::Editor,
            key_id: ApiKeyId::from("key_1"),
            name: "reader".to_owned(),
            bound_to: None,
            expires_at: None,
            call: None,
        };
        let now = Timestamp::from_millis(1_000);
        let at = Timestamp::from_millis;
        let key = |role: Role, expires_at, environment_id| ApiKey {
            id: caller.key_id.clone(),
            account_id: caller.account_id.clone(),
            name: caller.name.clone(),
            role: role.as_str().to_owned(),
            environment_id,
            sha256: [0; 32],
            prefix: String::new(),
            created_at: at(0),
            expires_at,
            last_used_at: None,
            created_by_type: None,
            created_by_id: None,
            created_by_name: None,
        };
        for (key, code) in [
            (key(Role::Editor, None, None), None),
            (key(Role::Editor, Some(at(1_001)), None), None),
            (key(Role::Admin, None, None), None),
            (
                key(Role::Editor, Some(at(1_000)), None),
                Some(Code::Unauthenticated),
            ),
            (key(Role::Viewer, None, None), Some(Code::PermissionDenied)),
            (
                key(Role::Editor, None, Some(EnvironmentId::from("env_2"))),
                Some(Code::PermissionDenied),
            ),
        ] {
            assert_eq!(
                judge(&caller, &key, now).err().map(|error| error.code),
                code,
                "{key:?}"
            );
        }
    }
}
