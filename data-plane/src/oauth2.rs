//! Access tokens of a published API's issuer: JWTs that are proved by the issuer's public keys.
//! Which algorithms are taken is decided here, never by the token. The keys are fetched when they
//! are first needed, kept, and fetched again for a key that is not known, though not often; keys
//! that could not be fetched for long prove nothing.

mod jwt;
mod keys;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kanat_model::Timestamp;
use kanat_net::outbound;
use kanat_proto::plan::v1;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use jwt::{Claims, Token};
use keys::{Fetcher, Source, Unreachable};

/// A longer token is none of an issuer that means well.
const LONGEST: usize = 16 << 10;

/// An issuer's clock may be ahead by so many seconds.
const AHEAD_SECONDS: f64 = 60.0;

/// The issuers of all published APIs, with the keys that they have shown.
pub(crate) struct Issuers {
    fetcher: Fetcher,
    /// By issuer and address of the keys.
    sources: Mutex<HashMap<(String, String), Arc<Source>>>,
}

/// Whom a token was given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The client, or else the person; empty when the token names neither.
    pub name: String,
}

/// Why a token does not open an API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{0}")]
    Invalid(&'static str),
    /// These are needed, separated by spaces.
    #[error("the access token lacks a scope: {0:?} are needed")]
    Scope(String),
    #[error("the keys of the issuer cannot be had, try again later")]
    Unreachable,
}

impl Issuers {
    /// Keys are fetched through the guard of `outbound`, on tasks of `tasks`, until `stop`.
    pub fn new(outbound: outbound::Client, tasks: TaskTracker, stop: CancellationToken) -> Self {
        Self {
            fetcher: Fetcher {
                outbound,
                tasks,
                stop,
            },
            sources: Mutex::default(),
        }
    }

    /// Whom a token was given to, when it is good for the API at `now`.
    ///
    /// # Errors
    /// It is not, or that cannot be told because the issuer's keys cannot be had.
    pub async fn verify(
        &self,
        api: &v1::OAuth2,
        token: &[u8],
        now: Timestamp,
    ) -> Result<Subject, Refused> {
        if token.len() > LONGEST {
            return Err(Refused::Invalid("the access token is too long"));
        }
        let token = Token::read(token)
            .ok_or(Refused::Invalid("the access token is no JWT that is taken"))?;
        let source = self.source(api);
        let header = &token.header;
        let key = match source
            .key(&self.fetcher, header.kid.as_deref(), header.alg)
            .await
        {
            Ok(Some(key)) => key,
            Ok(None) => {
                return Err(Refused::Invalid(
                    "the access token is signed by no key of the issuer",
                ));
            }
            Err(Unreachable) => return Err(Refused::Unreachable),
        };
        let claims = token.prove(&key.key).ok_or(Refused::Invalid(
            "the access token is not what the issuer signed",
        ))?;
        if claims.iss != api.issuer {
            return Err(Refused::Invalid("the access token is of another issuer"));
        }
        if !claims.aud.contains(&api.audience) {
            return Err(Refused::Invalid("the access token is for another audience"));
        }
        check_times(&claims, now)?;
        check_scopes(&claims, &api.scopes)?;
        let name = claims
            .client_id
            .or(claims.azp)
            .or(claims.sub)
            .unwrap_or_default();
        Ok(Subject { name })
    }

    fn source(&self, api: &v1::OAuth2) -> Arc<Source> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let source = sources.entry((api.issuer.clone(), api.jwks_url.clone()));
        Arc::clone(source.or_insert_with(|| Arc::new(Source::new(&api.issuer, &api.jwks_url))))
    }
}

fn check_times(claims: &Claims, now: Timestamp) -> Result<(), Refused> {
    // Seconds of any length that a JWT can have are exact enough as such.
    let now = now.as_millis() as f64 / 1_000.0;
    if !claims.exp.is_finite() || now >= claims.exp {
        return Err(Refused::Invalid("the access token has expired"));
    }
    if claims.nbf.is_some_and(|nbf| now + AHEAD_SECONDS < nbf) {
        return Err(Refused::Invalid("the access token is not valid yet"));
    }
    Ok(())
}

fn check_scopes(claims: &Claims, needed: &[String]) -> Result<(), Refused> {
    let given = [&claims.scope, &claims.scp];
    let has = |wanted: &String| {
        given.iter().any(|scopes| {
            scopes
                .as_ref()
                .is_some_and(|scopes| scopes.has_word(wanted))
        })
    };
    if needed.iter().all(has) {
        Ok(())
    } else {
        Err(Refused::Scope(needed.join(" ")))
    }
}
