//! Conversion between HTTP headers and gRPC metadata, and the id of a request.

use http::header::{
    ACCEPT, AUTHORIZATION, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, RETRY_AFTER,
    USER_AGENT,
};
use kanat_net::request_id;

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const TO_METADATA: [HeaderName; 8] = [
    ACCEPT,
    AUTHORIZATION,
    HeaderName::from_static("x-environment"),
    IDEMPOTENCY_KEY,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    LAST_EVENT_ID,
    USER_AGENT,
];

const FROM_METADATA: [HeaderName; 4] = [
    ETAG,
    RETRY_AFTER,
    HeaderName::from_static("x-config-applied"),
    HeaderName::from_static("idempotency-replayed"),
];

/// Returns the metadata of the call. `If-Match` loses its quotes, which a gRPC caller would not
/// write.
pub(crate) fn to_metadata(headers: &HeaderMap, request_id: &HeaderValue) -> HeaderMap {
    let mut metadata = HeaderMap::new();
    for name in TO_METADATA {
        if let Some(value) = headers.get(&name) {
            metadata.insert(name, value.clone());
        }
    }
    // A second credential is for the service to judge.
    for value in headers.get_all(AUTHORIZATION).iter().skip(1) {
        metadata.append(AUTHORIZATION, value.clone());
    }
    if let Some(tag) = headers.get(IF_MATCH).and_then(|v| v.to_str().ok())
        && let Ok(tag) = HeaderValue::from_str(bare_tag(tag))
    {
        metadata.insert(IF_MATCH, tag);
    }
    metadata.insert(request_id::HEADER, request_id.clone());
    metadata
}

/// Returns the headers for the metadata of an answer.
pub(crate) fn from_metadata(metadata: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in FROM_METADATA {
        if let Some(value) = metadata.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    headers
}

/// Returns a tag in the form of `ETag`.
pub(crate) fn quoted_tag(tag: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{}\"", bare_tag(tag))).ok()
}

/// Returns whether `If-None-Match` names `tag`. Weak tags count as strong ones.
pub(crate) fn none_match(headers: &HeaderMap, tag: &str) -> bool {
    let lists = headers
        .get_all(http::header::IF_NONE_MATCH)
        .iter()
        .filter_map(|v| v.to_str().ok());
    lists
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|t| t == "*" || bare_tag(t) == bare_tag(tag))
}

fn bare_tag(tag: &str) -> &str {
    let tag = tag.trim();
    let strong = tag.strip_prefix("W/").unwrap_or(tag);
    strong
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .filter(|t| !t.contains('"'))
        .unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )])
    }

    #[test]
    fn compares_tags_weakly() {
        assert!(none_match(&headers("if-none-match", "\"a\", W/\"b\""), "b"));
        assert!(none_match(&headers("if-none-match", "*"), "b"));
        assert!(!none_match(&headers("if-none-match", "\"a\""), "b"));
        assert_eq!(
            to_metadata(
                &headers("if-match", "W/\"b\""),
                &HeaderValue::from_static("r")
            )
            .get(IF_MATCH)
            .unwrap(),
            "b"
        );
    }
}
