//! Consumer keys between the wire and the use-cases.

use kanat_model::id::{ConsumerKeyId, PublishedApiId};
use kanat_model::{Error, Timestamp};
use kanat_proto::v1 as wire;
use kanat_store::consumer_key::ConsumerKey;

use crate::app::consumer_key::{IssuedKey, KeyView, Limits, Update};
use crate::app::etag;
use crate::carry::carry;
use crate::grpc::clear;

pub fn new(request: wire::CreateConsumerKeyRequest) -> (PublishedApiId, String, Limits) {
    let wire::CreateConsumerKeyRequest {
        id,
        consumer,
        rate_limit_per_second,
        daily_limit,
    } = request;
    (
        id.into(),
        consumer,
        Limits {
            per_second: rate_limit_per_second,
            daily: daily_limit,
        },
    )
}

pub fn update(
    request: wire::UpdateConsumerKeyRequest,
) -> Result<(PublishedApiId, ConsumerKeyId, Update), Error> {
    let wire::UpdateConsumerKeyRequest {
        id,
        key_id,
        status,
        rate_limit_per_second,
        daily_limit,
        clear,
    } = request;
    clear::check(&clear, &["rate_limit_per_second", "daily_limit"])?;
    let per_second = clear::number(rate_limit_per_second, &clear, "rate_limit_per_second");
    let daily = clear::number(daily_limit, &clear, "daily_limit");
    Ok((
        id.into(),
        key_id.into(),
        Update {
            status,
            per_second,
            daily,
        },
    ))
}

/// A key with its text.
pub fn made(made: IssuedKey) -> wire::ConsumerKey {
    let created_at = made.key.created_at;
    let key_shown = made.text.is_none().then_some(false);
    let text = made.text.map(|text| text.expose().clone());
    wire::ConsumerKey {
        key: text,
        key_shown,
        ..key(made.key, created_at)
    }
}

/// A key without its text, as it is at `now`, and how it was used.
pub fn seen(seen: KeyView, now: Timestamp) -> wire::ConsumerKey {
    let key = key(seen.key, now);
    match seen.usage {
        Some(usage) => wire::ConsumerKey {
            request_count: usage.request_count,
            last_used_at: Some(usage.last_used_at.to_string()),
            ..key
        },
        None => key,
    }
}

fn key(key: ConsumerKey, now: Timestamp) -> wire::ConsumerKey {
    let tag = etag(&key);
    carry!(
        wire::ConsumerKey, key { consumer, prefix, rate_limit_per_second, daily_limit }
        text { id, api_id, created_at }
        optional { rotated_from }
        with {
            key_shown: None,
            etag: tag,
            status: key.standing.status(now).as_str().to_owned(),
            expires_at: key.standing.expires_at.map(|at| at.to_string()),
            revoked_at: key.standing.revoked_at.map(|at| at.to_string()),
            request_count: 0,
            last_used_at: None,
            key: None,
        }
    )
}
