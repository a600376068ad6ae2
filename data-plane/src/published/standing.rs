//! Where a consumer stands with its limits, as the headers of an answer tell it.

use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::limit::{Limited, Standing, Window};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

impl Standing {
    /// Tells it in the headers of an answer.
    pub fn write(&self, headers: &mut HeaderMap) {
        let per_second = self.limits.rate.calls;
        let per_day = self.limits.per_day;
        let limit = match self.window {
            Window::None => return,
            Window::Second => u64::from(per_second),
            Window::Day => per_day,
        };
        headers.insert(LIMIT, HeaderValue::from(limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(whole_seconds(self.reset)));
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
}

impl Limited {
    /// Tells it in the headers of an answer.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(
            header::RETRY_AFTER,
            HeaderValue::from(whole_seconds(self.retry_after).max(1)),
        );
        self.standing.write(headers);
    }

    /// In words for the consumer.
    pub fn message(&self) -> String {
        let per_second = self.standing.limits.rate.calls;
        let per_day = self.standing.limits.per_day;
        match self.standing.window {
            Window::Day => {
                format!("the key allows {per_day} calls per day, and today's are used up")
            }
            Window::Second | Window::None => {
                format!("the key allows {per_second} calls per second")
            }
        }
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limits;

    fn told(headers: &HeaderMap) -> Vec<(&str, &str)> {
        let mut told: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn a_refusal_tells_which_limit_it_was_and_when_to_come_back() {
        let limits = Limits::of_key(20, 1_000);
        let standing = Standing {
            window: Window::Day,
            limits,
            remaining: 0,
            reset: Duration::from_millis(4_100),
        };
        let mut headers = HeaderMap::new();
        Limited {
            retry_after: Duration::from_millis(4_100),
            again: Duration::ZERO,
            standing,
        }
        .write(&mut headers);
        let expected = [
            ("ratelimit-limit", "1000"),
            ("ratelimit-policy", "20;w=1, 1000;w=86400"),
            ("ratelimit-remaining", "0"),
            ("ratelimit-reset", "5"),
            ("retry-after", "5"),
        ];
        assert_eq!(told(&headers), expected);
    }

    #[test]
    fn a_pause_is_never_shorter_than_a_second() {
        let limits = Limits::of_key(20, 0);
        let standing = Standing {
            window: Window::Second,
            limits,
            remaining: 0,
            reset: Duration::ZERO,
        };
        let mut headers = HeaderMap::new();
        Limited {
            retry_after: Duration::from_millis(3),
            again: Duration::ZERO,
            standing,
        }
        .write(&mut headers);
        assert_eq!(headers["retry-after"], "1");
        assert_eq!(headers["ratelimit-policy"], "20;w=1");
    }

    #[test]
    fn a_key_without_limits_is_told_nothing() {
        let limits = Limits::of_key(0, 0);
        let mut headers = HeaderMap::new();
        Standing {
            window: Window::None,
            limits,
            remaining: 0,
            reset: Duration::ZERO,
        }
        .write(&mut headers);
        assert!(headers.is_empty());
    }
}
