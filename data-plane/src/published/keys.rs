//! Consumer keys: found by the SHA-256 of their text, as webhook tokens are.

use std::sync::Arc;

use http::{HeaderMap, header};
use kanat_model::Timestamp;
use kanat_plan_stream::Sharded;
use kanat_proto::plan::v1::ConsumerKey;
use sha2::{Digest, Sha256};

/// A consumer's key for one published API.
#[derive(Debug)]
pub(crate) struct Key {
    pub id: String,
    pub api_id: String,
    pub consumer: String,
    sha256: [u8; 32],
    /// Not accepted from this instant on.
    expires_at: Option<Timestamp>,
    suspended: bool,
}

/// Why a call is not let in; what it was is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("a consumer key is needed, as a bearer token")]
    Missing,
    #[error("the consumer key is not valid")]
    Invalid,
}

/// The keys of an environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    by_sha256: Sharded<[u8; 32], Arc<Key>>,
}

impl Key {
    /// Errors with what is wrong with the plan.
    pub fn compile(plan: ConsumerKey) -> Result<Self, String> {
        let sha256 = plan.sha256.as_slice().try_into().map_err(|_| "a key's hash has 32 bytes".to_owned())?;
        Ok(Self {
            id: plan.id,
            api_id: plan.api_id,
            consumer: plan.consumer,
            sha256,
            expires_at: (plan.expires_at != 0).then(|| Timestamp::from_millis(plan.expires_at)),
            suspended: plan.suspended,
        })
    }
}

impl Keys {
    pub fn insert(&mut self, key: Arc<Key>) {
        self.by_sha256.insert(key.sha256, key);
    }

    /// Takes `key` out, unless another has its place.
    pub fn remove(&mut self, key: &Key) {
        if self.by_sha256.get(&key.sha256).is_some_and(|held| held.id == key.id) {
            self.by_sha256.remove(&key.sha256);
        }
    }

    /// The key that a request carries, when it opens this API at `now`.
    pub fn find(&self, api_id: &str, headers: &HeaderMap, now: Timestamp) -> Result<&Arc<Key>, Refused> {
        let text = bearer(headers).ok_or(Refused::Missing)?;
        let sha256: [u8; 32] = Sha256::digest(text).into();
        let key = self.by_sha256.get(&sha256).filter(|key| key.api_id == api_id && !key.suspended);
        key.filter(|key| key.expires_at.is_none_or(|expires_at| now < expires_at)).ok_or(Refused::Invalid)
    }
}

/// The token of `Authorization: Bearer`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then(|| token.trim_ascii())
}
