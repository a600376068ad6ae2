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
use kanat_model::id::EnvironmentId;
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_store::{api_key, member};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tonic::Status;
use tonic::body::Body;

use super::places::Place;
use super::unauthenticated;
use crate::app::{App, Caller, Credential};
use crate::grpc::status;

/// Interval at which a stream checks its credential.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Time for which a credential that was read serves all of its streams.
const CACHE_TIME: Duration = Duration::from_millis(250);

/// Cache of the credentials that have streams, as they were last read.
#[derive(Clone, Default)]
pub struct CredentialCache(Arc<Mutex<HashMap<Credential, Reading>>>);

struct Reading {
    at: Instant,
    /// `None` once the key is revoked, or the member removed.
    rights: Option<Rights>,
}

/// Rights of a credential.
#[derive(Debug, Clone)]
struct Rights {
    /// A role's text.
    role: String,
    environment_id: Option<EnvironmentId>,
}

impl CredentialCache {
    /// Ends the response when the caller's credential ends, and holds `place` until then. Without a
    /// caller only the place is held.
    pub fn end_with_credential(
        &self,
        app: &Arc<App>,
        caller: Option<Caller>,
        place: Option<Place>,
        response: Response<Body>,
    ) -> Response<Body> {
        let cache = self.clone();
        let app = Arc::clone(app);
        let end = match caller {
            Some(caller) => async move { status::of(cache.end(&app, &caller).await) }.boxed(),
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
            match self.read(app, caller).await {
                Ok(rights) => {
                    if let Err(error) = judge(caller, rights.as_ref(), Timestamp::now()) {
                        return error;
                    }
                }
                // A store that does not answer revokes nothing, either.
                Err(error) => tracing::warn!(
                    %error,
                    credential.id = caller.credential.id(),
                    "cannot see whether a credential that has a stream holds",
                ),
            }
            let expires_at = caller.expires_at;
            let left = expires_at.map_or(Duration::MAX, |at| at.since(Timestamp::now()));
            tokio::select! {
                () = changes.next(CHECK_INTERVAL) => {}
                () = sleep(left) => {}
            }
        }
    }

    async fn read(&self, app: &App, caller: &Caller) -> Result<Option<Rights>> {
        let credential = &caller.credential;
        if let Some(found) = self
            .0
            .lock()
            .get(credential)
            .filter(|reading| reading.at.elapsed() < CACHE_TIME)
        {
            return Ok(found.rights.clone());
        }
        let mut tx = app.store.read().await?;
        let account = &caller.account_id;
        let rights = match credential {
            Credential::Key(id) => {
                let key = api_key::get(&mut tx, account, id).await?;
                key.map(|key| Rights {
                    role: key.role,
                    environment_id: key.environment_id,
                })
            }
            Credential::Member(id) => {
                let member = member::get(&mut tx, account, id).await?;
                member.map(|member| Rights {
                    role: member.role,
                    environment_id: None,
                })
            }
            Credential::Person(_) => Some(Rights {
                role: caller.role.to_string(),
                environment_id: None,
            }),
        };
        drop(tx);
        let mut readings = self.0.lock();
        readings.retain(|_, reading| reading.at.elapsed() < CACHE_TIME);
        readings.insert(
            credential.clone(),
            Reading {
                at: Instant::now(),
                rights: rights.clone(),
            },
        );
        Ok(rights)
    }
}

/// Errors when the credential allows less than it did when the stream began.
fn judge(caller: &Caller, rights: Option<&Rights>, now: Timestamp) -> Result<()> {
    let Some(rights) = rights else {
        return Err(unauthenticated(match caller.credential {
            Credential::Key(_) => "the API key was revoked",
            Credential::Member(_) | Credential::Person(_) => "the member was removed",
        }));
    };
    if caller.expires_at.is_some_and(|at| now >= at) {
        return Err(unauthenticated(match caller.credential {
            Credential::Key(_) => "the API key has expired",
            Credential::Member(_) | Credential::Person(_) => "the access token has expired",
        }));
    }
    let role = Role::parse(&rights.role).unwrap_or(Role::Viewer);
    if role != caller.role && !role.may_grant(caller.role) {
        let message = match caller.credential {
            Credential::Key(_) => "the role of the API key was lowered",
            Credential::Member(_) | Credential::Person(_) => "the role of the member was lowered",
        };
        return Err(Error::new(Code::PermissionDenied, message));
    }
    if rights.environment_id != caller.bound_to {
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
    use kanat_model::id::{AccountId, ApiKeyId};

    use super::*;
    use crate::authentication::places::{Holder, Kind, Places};

    #[test]
    fn an_answer_of_headers_alone_is_at_its_end() {
        let key = Holder::Caller(Credential::Key(ApiKeyId::from("key_1")));
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
        let at = Timestamp::from_millis;
        let caller = |expires_at| Caller {
            account_id: AccountId::from("acc_1"),
            environment_id: EnvironmentId::from("env_1"),
            role: Role::Editor,
            credential: Credential::Key(ApiKeyId::from("key_1")),
            name: "reader".to_owned(),
            email: None,
            bound_to: None,
            expires_at,
            idempotency_id: None,
        };
        let rights = |role: Role, environment_id| {
            Some(Rights {
                role: role.to_string(),
                environment_id,
            })
        };
        let of_other = Some(EnvironmentId::from("env_2"));
        for (rights, expires_at, code) in [
            (rights(Role::Editor, None), None, None),
            (rights(Role::Editor, None), Some(at(1_001)), None),
            (rights(Role::Admin, None), None, None),
            (None, None, Some(Code::Unauthenticated)),
            (
                rights(Role::Editor, None),
                Some(at(1_000)),
                Some(Code::Unauthenticated),
            ),
            (
                rights(Role::Viewer, None),
                None,
                Some(Code::PermissionDenied),
            ),
            (
                rights(Role::Editor, of_other),
                None,
                Some(Code::PermissionDenied),
            ),
        ] {
            let judged = judge(&caller(expires_at), rights.as_ref(), at(1_000));
            assert_eq!(judged.err().map(|error| error.code), code, "{rights:?}");
        }
    }
}
