//! Ordering keys and deduplication keys, in the same form for all callers of the log.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BatchJobId, ScheduleId};
use sha2::{Digest, Sha256};

use crate::{DedupeKey, RepeatPolicy};

/// Time for which a flow's idempotency key is remembered.
const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Time within which another node has read a page again, if a node dies while it reads the page.
const POLL_WINDOW: Duration = Duration::from_secs(60 * 60);

/// Length of a key beyond which its hash is kept.
const MAX_BYTES: usize = 256;

/// Returns the key that a flow's `idempotency_key` gave.
pub fn idempotency(key: String) -> DedupeKey {
    // Flows and senders choose their keys apart from each other, so these must not meet.
    DedupeKey {
        key: format!("key:{}", bounded(key)),
        ttl: IDEMPOTENCY_WINDOW,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of the id under which a sender delivers, remembered for `window`.
pub fn delivery(id: String, window: Duration) -> DedupeKey {
    DedupeKey {
        key: format!("delivery:{}", bounded(id)),
        ttl: window,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a call that a consumer of a published API names.
pub fn call(api: &str, consumer: &str, key: &str) -> DedupeKey {
    // The length separates the name, which an issuer chose, from the key after it.
    let key = bounded(format!("{}:{consumer}:{key}", consumer.len()));
    DedupeKey {
        key: format!("call:{api}:{key}"),
        ttl: IDEMPOTENCY_WINDOW,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a call of the management API that came with an idempotency key.
pub fn management(call: &str) -> DedupeKey {
    DedupeKey {
        key: format!("management:{call}"),
        ttl: IDEMPOTENCY_WINDOW,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a due time of a schedule, remembered for `window`.
pub fn schedule(id: &ScheduleId, due: Timestamp, window: Duration) -> DedupeKey {
    DedupeKey {
        key: format!("schedule:{id}:{}", due.as_millis()),
        ttl: window,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a record of a batch job by its position, remembered for `window`.
pub fn batch_record(job: &BatchJobId, position: i64, window: Duration) -> DedupeKey {
    DedupeKey {
        key: format!("batch:{job}:{position}"),
        ttl: window,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a record that a poll appends for the n-th time, until it is noted as seen.
pub fn record(id: &str, count: i64, hash: &str) -> DedupeKey {
    DedupeKey {
        key: format!("record:{count}:{hash}:{}", bounded(id.to_owned())),
        ttl: POLL_WINDOW,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key of a record by its position in a cycle of a poll, until the page is done.
pub fn record_position(began_at: Timestamp, page: u32, index: usize, hash: &str) -> DedupeKey {
    DedupeKey {
        key: format!("place:{}:{page}:{index}:{hash}", began_at.as_millis()),
        ttl: POLL_WINDOW,
        policy: RepeatPolicy::Refuse,
    }
}

/// Returns the key that a flow's `ordering_key` gave.
pub fn ordering(key: String) -> String {
    bounded(key)
}

/// Returns a flow's key in the form that may be stored: hashed if it contains one of `credentials`.
pub fn without_credentials(key: String, credentials: &[String]) -> String {
    if credentials.iter().any(|secret| key.contains(secret)) {
        hex::encode(Sha256::digest(key.as_bytes()))
    } else {
        key
    }
}

fn bounded(key: String) -> String {
    if key.len() <= MAX_BYTES {
        key
    } else {
        format!("sha256:{}", hex::encode(Sha256::digest(key.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_flows_and_senders_never_meet_and_none_is_long() {
        assert_ne!(
            idempotency("a".to_owned()).key,
            delivery("a".to_owned(), Duration::ZERO).key
        );
        let long = ordering("x".repeat(10_000));
        assert!(
            long.len() < 100 && long != ordering("x".repeat(10_001)),
            "{long}"
        );
        assert_eq!(ordering("customer-7".to_owned()), "customer-7");
    }

    #[test]
    fn calls_of_two_consumers_never_meet() {
        assert_ne!(
            call("orders", "shop", "eu:7").key,
            call("orders", "shop:eu", "7").key
        );
        assert!(call("orders", &"x".repeat(10_000), "7").key.len() < 100);
    }
}
