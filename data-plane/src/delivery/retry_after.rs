//! Delay that a target requests by `Retry-After`.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, header};
use kanat_model::Timestamp;

/// Longest delay that is respected.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the delay that an answer requests: with status 429 or 503, in seconds or as an HTTP
/// date.
pub(crate) fn asked(status: u16, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if !matches!(status, 429 | 503) {
        return None;
    }
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(MAX_DELAY, Duration::from_secs)
    } else {
        let at = httpdate::parse_http_date(text)
            .ok()?
            .duration_since(UNIX_EPOCH)
            .ok()?;
        Timestamp::from_millis(0).after(at).since(now)
    };
    Some(wait.min(MAX_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, text.parse().unwrap());
        // Wed, 21 Oct 2015 07:28:00 GMT
        asked(status, &headers, Timestamp::from_millis(1_445_412_480_000))
    }

    #[test]
    fn reads_seconds_and_dates() {
        assert_eq!(of(429, "120"), Some(Duration::from_secs(120)));
        assert_eq!(of(503, " 0 "), Some(Duration::ZERO));
        assert_eq!(
            of(503, "Wed, 21 Oct 2015 07:29:30 GMT"),
            Some(Duration::from_secs(90))
        );
        assert_eq!(
            of(503, "Wed, 21 Oct 2015 07:00:00 GMT"),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn asks_for_a_day_at_most() {
        assert_eq!(of(429, "999999999999999999999999"), Some(MAX_DELAY));
        assert_eq!(of(429, "Sun, 21 Oct 2035 07:28:00 GMT"), Some(MAX_DELAY));
    }

    #[test]
    fn counts_for_429_and_503_only_and_when_it_can_be_read() {
        assert_eq!(
            [
                of(500, "120"),
                of(200, "120"),
                of(429, "soon"),
                of(429, "-1"),
                of(429, "")
            ],
            [None; 5]
        );
    }
}
