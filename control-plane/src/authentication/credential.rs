//! From the credential of a request to its caller: an API key, or a token of an identity provider.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use kanat_auth::{Role, key};
use kanat_model::id::AccountId;
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_net::Peer;
use kanat_store::{Tx, account, api_key, member};

use super::{Authentication, unauthenticated};
use crate::app::member::provision_member;
use crate::app::{App, Caller, Credential};
use crate::identity::Identity;

/// When a credential was last used is written down no more often than this.
const LAST_USED_PRECISION: Duration = Duration::from_secs(60);

/// Credential as the request has it.
pub enum Presented<'h> {
    Key(&'h str),
    /// Any text that is no API key.
    Token(&'h str),
}

/// Caller whose credential is valid, in no environment yet.
pub struct AuthenticatedCaller {
    pub caller: Caller,
    last_used_at: Option<Timestamp>,
    /// Transaction for what else the call needs to be judged.
    pub tx: Tx,
}

/// Returns the credential in the headers.
///
/// # Errors
/// There is none, or more than one.
pub fn presented(headers: &HeaderMap) -> Result<Presented<'_>> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values
        .next()
        .ok_or_else(|| unauthenticated("send an API key: Authorization: Bearer kanat_ak_..."))?;
    if values.next().is_some() {
        return Err(Error::field(
            "Authorization",
            "is there more than once: send one credential",
        ));
    }
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    match text {
        Some((scheme, text)) if scheme.eq_ignore_ascii_case("bearer") => {
            let key = text.trim();
            Ok(if key.starts_with(key::PREFIX) {
                Presented::Key(key)
            } else {
                Presented::Token(text)
            })
        }
        Some(_) | None => Err(no_key()),
    }
}

fn no_key() -> Error {
    unauthenticated("the Authorization header carries no API key: Bearer kanat_ak_...")
}

impl Authentication {
    /// Returns the caller of an API key.
    pub(super) async fn by_key(
        &self,
        text: &str,
        peer: Option<&Peer>,
    ) -> Result<AuthenticatedCaller> {
        let sha256 = key::sha256(text);
        let address = peer.map(Peer::network);
        let check = address.and_then(|address| self.wrong_keys.begin(address));
        if let (Some(address), None) = (address, &check)
            && !self.wrong_keys.is_known(&self.app.store, &sha256).await?
        {
            self.wrong_keys.refused(address);
            return Err(Error::new(
                Code::ResourceExhausted,
                "too many wrong API keys came from this address",
            ));
        }
        let mut tx = self.app.store.read().await?;
        let found = api_key::by_hash(&mut tx, &sha256).await?;
        let now = Timestamp::now();
        // A key that has expired is answered like one that never was.
        let Some(key) = found.filter(|key| key.expires_at.is_none_or(|at| now < at)) else {
            if let Some(check) = check {
                check.wrong();
            }
            return Err(unauthenticated(
                "the API key is not known, has expired or was revoked",
            ));
        };
        if let Some(check) = check {
            check.right();
        }
        Ok(AuthenticatedCaller {
            tx,
            last_used_at: key.last_used_at,
            caller: Caller {
                account_id: key.account_id,
                environment_id: key.environment_id.clone().unwrap_or_else(|| "".into()),
                // An unknown role, of a newer build, counts as viewer.
                role: Role::parse(&key.role).unwrap_or(Role::Viewer),
                credential: Credential::Key(key.id),
                name: key.name,
                email: None,
                bound_to: key.environment_id,
                expires_at: key.expires_at,
                idempotency_id: None,
            },
        })
    }

    /// Returns the person of a token, member or not.
    pub(super) async fn person(
        &self,
        token: &str,
        known: &mut Option<Caller>,
    ) -> Result<AuthenticatedCaller> {
        let (_, caller) = self.identified(token, known).await?;
        Ok(AuthenticatedCaller {
            caller: caller.clone(),
            last_used_at: None,
            tx: self.app.store.read().await?,
        })
    }

    /// Returns the member whose token it is. A person whose token is right is `known` although the
    /// call is refused.
    pub(super) async fn member(
        &self,
        token: &str,
        known: &mut Option<Caller>,
    ) -> Result<AuthenticatedCaller> {
        let (person, caller) = self.identified(token, known).await?;
        let member = provision_member(&self.app, &caller.account_id, &person).await?;
        caller.role = Role::parse(&member.role).unwrap_or(Role::Viewer);
        member.title().clone_into(&mut caller.name);
        caller.email = member.email;
        caller.credential = Credential::Member(member.id);
        Ok(AuthenticatedCaller {
            caller: caller.clone(),
            last_used_at: member.last_seen_at,
            tx: self.app.store.read().await?,
        })
    }

    /// Verifies a token; its person is `known` from then on.
    async fn identified<'k>(
        &self,
        token: &str,
        known: &'k mut Option<Caller>,
    ) -> Result<(Arc<Identity>, &'k mut Caller)> {
        if self.app.identities.is_empty() {
            return Err(no_key());
        }
        let person = self.app.identities.verify(token, Timestamp::now()).await?;
        let person = Arc::new(person);
        let caller = known.insert(Caller {
            account_id: self.account().await?.clone(),
            environment_id: "".into(),
            role: Role::Viewer,
            name: person.name.clone(),
            email: person.email.clone(),
            bound_to: None,
            expires_at: Some(person.expires_at),
            credential: Credential::Person(Arc::clone(&person)),
            idempotency_id: None,
        });
        Ok((person, caller))
    }

    /// Returns the one account of the deployment, which the first start makes.
    async fn account(&self) -> Result<&AccountId> {
        let read = async || {
            let found = account::first(&mut *self.app.store.read().await?).await?;
            let found = found.ok_or_else(Error::internal)?;
            Ok(found.id)
        };
        self.account.get_or_try_init(read).await
    }
}

impl AuthenticatedCaller {
    /// Notes that the credential was used. Not being able to write it down is no reason to refuse
    /// the call.
    pub async fn note_use(self, app: &App) {
        drop(self.tx);
        let now = Timestamp::now();
        if self
            .last_used_at
            .is_some_and(|at| now.since(at) < LAST_USED_PRECISION)
        {
            return;
        }
        let noted = async {
            let mut tx = app.store.begin().await?;
            match &self.caller.credential {
                Credential::Key(id) => api_key::used(&mut tx, id, now).await?,
                Credential::Member(id) => member::seen(&mut tx, id, now).await?,
                Credential::Person(_) => return Ok(()),
            }
            tx.commit().await
        };
        if let Err(error) = noted.await {
            let id = self.caller.credential.id();
            tracing::warn!(credential.id = id, %error, "cannot note that a credential was used");
        }
    }
}
