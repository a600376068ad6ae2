//! Consumer keys, found by the SHA-256 of their text, as webhook tokens are.

use std::sync::Arc;

use http::{HeaderMap, header};
use kanat_auth::consumer_key;
use kanat_model::Timestamp;
use kanat_model::id::ConsumerKeyId;
use kanat_plan_stream::ShardedMap;
use kanat_proto::plan::v1::ConsumerKey;
use kanat_rate_limit::{self as rate_limit, Limits};
use sha2::{Digest, Sha256};

/// A consumer's key for one published API.
#[derive(Debug)]
pub(crate) struct Key {
    /// Key of the consumer key in the rate limiter.
    pub limit_key: rate_limit::Key,
    pub api_id: String,
    pub consumer: String,
    pub limits: Limits,
    sha256: [u8; 32],
    /// Not accepted from this instant on.
    expires_at: Option<Timestamp>,
    suspended: bool,
}

/// Reason why a call is refused. It does not say which check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("a consumer key is needed, as a bearer token")]
    Missing,
    #[error("the consumer key is not valid")]
    Invalid,
}

/// The keys of an environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys {
    by_sha256: ShardedMap<[u8; 32], Arc<Key>>,
}

impl Key {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The plan is not valid; the text is for an operator.
    pub fn compile(plan: ConsumerKey) -> Result<Self, String> {
        let sha256 = plan
            .sha256
            .as_slice()
            .try_into()
            .map_err(|_| "a key's hash has 32 bytes".to_owned())?;
        Ok(Self {
            limit_key: ConsumerKeyId::new(plan.id).into(),
            api_id: plan.api_id,
            consumer: plan.consumer,
            limits: Limits::per_second_and_day(plan.rate_limit_per_second, plan.daily_limit),
            sha256,
            expires_at: (plan.expires_at != 0).then(|| Timestamp::from_millis(plan.expires_at)),
            suspended: plan.suspended,
        })
    }

    /// Returns the beginning of the key's text, which names its consumer and opens nothing.
    pub fn prefix(&self) -> String {
        consumer_key::prefix(&self.consumer)
    }
}

impl Keys {
    pub fn insert(&mut self, key: Arc<Key>) {
        self.by_sha256.insert(key.sha256, key);
    }

    /// Removes `key`, unless another key has taken its place.
    pub fn remove(&mut self, key: &Key) {
        if self
            .by_sha256
            .get(&key.sha256)
            .is_some_and(|held| held.limit_key == key.limit_key)
        {
            self.by_sha256.remove(&key.sha256);
        }
    }

    /// Returns the key of a request, if it opens this API at `now`.
    pub fn find(
        &self,
        api_id: &str,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<&Arc<Key>, KeyError> {
        let text = bearer(headers).ok_or(KeyError::Missing)?;
        let sha256: [u8; 32] = Sha256::digest(text).into();
        let key = self
            .by_sha256
            .get(&sha256)
            .filter(|key| key.api_id == api_id && !key.suspended);
        key.filter(|key| key.expires_at.is_none_or(|expires_at| now < expires_at))
            .ok_or(KeyError::Invalid)
    }
}

/// Returns the token of `Authorization: Bearer`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const DEADLINE: Timestamp = Timestamp::from_millis(1_769_860_800_000);

    fn plan(text: &str) -> ConsumerKey {
        ConsumerKey {
            id: format!("ck_{text}"),
            api_id: "api_1".to_owned(),
            sha256: Sha256::digest(text).to_vec(),
            ..ConsumerKey::default()
        }
    }

    fn found(
        keys: &Keys,
        api_id: &str,
        authorization: &str,
        now: Timestamp,
    ) -> Result<String, KeyError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        keys.find(api_id, &headers, now)
            .map(|key| key.limit_key.to_string())
    }

    #[test]
    fn a_key_opens_its_own_api_until_its_deadline_and_not_a_second_longer() {
        let mut keys = Keys::default();
        let old = ConsumerKey {
            expires_at: DEADLINE.as_millis(),
            ..plan("old")
        };
        let suspended = ConsumerKey {
            suspended: true,
            ..plan("suspended")
        };
        for plan in [old, plan("new"), suspended] {
            keys.insert(Arc::new(Key::compile(plan).unwrap()));
        }
        let second = Duration::from_secs(1);
        let cases = [
            ("api_1", "Bearer old", DEADLINE.before(second), true),
            (
                "api_1",
                "Bearer old",
                DEADLINE.before(Duration::from_millis(1)),
                true,
            ),
            ("api_1", "Bearer old", DEADLINE, false),
            ("api_1", "Bearer old", DEADLINE.after(second), false),
            ("api_1", "bearer  new", DEADLINE.after(second), true),
            ("api_2", "Bearer new", DEADLINE, false),
            ("api_1", "Bearer suspended", DEADLINE, false),
            ("api_1", "Bearer NEW", DEADLINE, false),
            ("api_1", "Basic new", DEADLINE, false),
            ("api_1", "Bearer ", DEADLINE, false),
            ("api_1", "new", DEADLINE, false),
        ];
        for (api_id, authorization, now, opens) in cases {
            assert_eq!(
                found(&keys, api_id, authorization, now).is_ok(),
                opens,
                "{authorization} at {now}"
            );
        }
        assert_eq!(
            keys.find("api_1", &HeaderMap::new(), DEADLINE).map(drop),
            Err(KeyError::Missing)
        );
        assert_eq!(
            found(&keys, "api_1", "Bearer other", DEADLINE),
            Err(KeyError::Invalid)
        );
    }

    #[test]
    fn a_key_gives_up_its_place_only_for_itself() {
        let mut keys = Keys::default();
        let key = Arc::new(Key::compile(plan("a")).unwrap());
        keys.insert(Arc::clone(&key));
        let former = Key::compile(ConsumerKey {
            id: "ck_former".to_owned(),
            ..plan("a")
        })
        .unwrap();
        keys.remove(&former);
        assert!(found(&keys, "api_1", "Bearer a", DEADLINE).is_ok());
        keys.remove(&key);
        assert!(found(&keys, "api_1", "Bearer a", DEADLINE).is_err());
    }
}
