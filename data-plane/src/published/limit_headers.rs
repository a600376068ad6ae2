//! The status of a consumer's limits in the headers of an answer.

use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use kanat_rate_limit::{LimitExceeded, LimitKind, LimitStatus};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Writes the status of a limit into the headers of an answer.
pub fn write(status: &LimitStatus, headers: &mut HeaderMap) {
    let per_second = status.limits.rate.calls;
    let per_day = status.limits.per_day;
    let limit = match status.kind {
        LimitKind::None => return,
        LimitKind::Rate => u64::from(per_second),
        LimitKind::Day => per_day,
    };
    headers.insert(LIMIT, HeaderValue::from(limit));
    headers.insert(REMAINING, HeaderValue::from(status.remaining));
    headers.insert(RESET, HeaderValue::from(whole_seconds(status.reset)));
    let mut policy = String::with_capacity(40);
    for (limit, window) in [(u64::from(per_second), 1), (per_day, 86_400)]
        .into_iter()
        .filter(|(limit, _)| *limit > 0)
    {
        let comma = if policy.is_empty() { "" } else { ", " };
        let _ = write!(policy, "{comma}{limit};w={window}");
    }
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(POLICY, policy);
    }
}

/// Writes a rejection into the headers of an answer.
pub fn write_exceeded(exceeded: &LimitExceeded, headers: &mut HeaderMap) {
    headers.insert(
        header::RETRY_AFTER,
        HeaderValue::from(whole_seconds(exceeded.retry_after).max(1)),
    );
    write(&exceeded.status, headers);
}

/// Returns the text of a rejection for the consumer.
pub fn message(exceeded: &LimitExceeded) -> String {
    let limits = exceeded.status.limits;
    match exceeded.status.kind {
        LimitKind::Day => format!(
            "the key allows {} calls per day, and today's are used up",
            limits.per_day
        ),
        LimitKind::Rate | LimitKind::None => {
            format!("the key allows {} calls per second", limits.rate.calls)
        }
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use kanat_rate_limit::Limits;

    use super::*;

    fn sorted(headers: &HeaderMap) -> Vec<(&str, &str)> {
        let mut pairs: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn a_refusal_names_the_limit_and_when_to_come_back() {
        let limits = Limits::per_second_and_day(20, 1_000);
        let status = LimitStatus {
            kind: LimitKind::Day,
            limits,
            remaining: 0,
            reset: Duration::from_millis(4_100),
        };
        let mut headers = HeaderMap::new();
        let exceeded = LimitExceeded {
            retry_after: Duration::from_millis(4_100),
            next_attempt_in: Duration::ZERO,
            status,
        };
        write_exceeded(&exceeded, &mut headers);
        let expected = [
            ("ratelimit-limit", "1000"),
            ("ratelimit-policy", "20;w=1, 1000;w=86400"),
            ("ratelimit-remaining", "0"),
            ("ratelimit-reset", "5"),
            ("retry-after", "5"),
        ];
        assert_eq!(sorted(&headers), expected);
    }

    #[test]
    fn a_pause_is_never_shorter_than_a_second() {
        let limits = Limits::per_second_and_day(20, 0);
        let status = LimitStatus {
            kind: LimitKind::Rate,
            limits,
            remaining: 0,
            reset: Duration::ZERO,
        };
        let mut headers = HeaderMap::new();
        let exceeded = LimitExceeded {
            retry_after: Duration::from_millis(3),
            next_attempt_in: Duration::ZERO,
            status,
        };
        write_exceeded(&exceeded, &mut headers);
        assert_eq!(headers["retry-after"], "1");
        assert_eq!(headers["ratelimit-policy"], "20;w=1");
    }

    #[test]
    fn a_key_without_limits_gets_no_limit_headers() {
        let limits = Limits::per_second_and_day(0, 0);
        let mut headers = HeaderMap::new();
        let status = LimitStatus {
            kind: LimitKind::None,
            limits,
            remaining: 0,
            reset: Duration::ZERO,
        };
        write(&status, &mut headers);
        assert!(headers.is_empty());
    }
}
