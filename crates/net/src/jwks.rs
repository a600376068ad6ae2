//! Verification of access tokens by keys that their issuers publish. Keys are fetched when they are
//! first needed, cached, and fetched again for an unknown key id, but not often.

mod cache;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kanat_auth::jwt::{self, Claims, Policy, UnverifiedToken};
use kanat_model::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::outbound;
use cache::{Fetcher, KeyCache};

/// Verifies tokens of any number of issuers, whose keys it caches.
pub struct TokenVerifier {
    fetcher: Fetcher,
    caches: Mutex<HashMap<KeySource, Arc<KeyCache>>>,
    max_key_age: Duration,
}

/// Issuer, and the address of its keys where it is not discovered.
type KeySource = (String, Option<String>);

/// Reason why a token is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Invalid(#[from] jwt::Error),
    #[error("the keys of the issuer cannot be had, try again later")]
    KeysUnavailable,
}

impl TokenVerifier {
    /// Fetches keys through the guard of `outbound`, on tasks of `tasks`, until `stop`. Keys that
    /// could not be refreshed for `max_key_age` verify nothing: they may be withdrawn.
    pub fn new(
        outbound: outbound::Client,
        tasks: TaskTracker,
        stop: CancellationToken,
        max_key_age: Duration,
    ) -> Self {
        Self {
            fetcher: Fetcher {
                outbound,
                tasks,
                stop,
            },
            caches: Mutex::default(),
            max_key_age,
        }
    }

    /// Returns the claims of a token that meets `policy` at the time `now` and is signed by a key
    /// of its issuer. Without `jwks_url`, the issuer's discovery document (OpenID Connect Discovery
    /// 1.0) names the address of the keys.
    ///
    /// # Errors
    /// The token is invalid, or the issuer's keys are not available.
    pub async fn verify(
        &self,
        policy: &Policy<'_>,
        jwks_url: Option<&str>,
        token: &[u8],
        now: Timestamp,
    ) -> Result<Claims, Error> {
        let token = UnverifiedToken::parse(token, policy)?;
        let cache = self.cache(policy.issuer, jwks_url);
        let keys = cache
            .keys(&self.fetcher, &token)
            .await
            .ok_or(Error::KeysUnavailable)?;
        let key = token.find_key(&keys).ok_or(jwt::Error::UnknownKey)?;
        Ok(token.verify(key, policy, now)?)
    }

    fn cache(&self, issuer: &str, jwks_url: Option<&str>) -> Arc<KeyCache> {
        let id = (issuer.to_owned(), jwks_url.map(str::to_owned));
        let mut caches = self.caches.lock();
        let cache = caches.entry(id).or_insert_with_key(|(issuer, jwks_url)| {
            let cache = KeyCache::new(issuer.clone(), jwks_url.clone(), self.max_key_age);
            Arc::new(cache)
        });
        Arc::clone(cache)
    }
}
