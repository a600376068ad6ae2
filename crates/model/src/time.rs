//! Instants as milliseconds since 1970 in UTC, and their ISO 8601 text. The one place that reads
//! the wall clock.

use std::fmt;
use std::time::Duration;

/// An instant in milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The present instant by the wall clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one reader of the wall clock"
    )]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads ISO 8601 with an offset; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|t| Self(t.as_millisecond()))
    }

    /// The instant `duration` later; the last representable one when that is too far.
    pub fn after(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The instant `duration` earlier.
    pub fn before(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// The time from `earlier` to this instant; zero when that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// `2026-01-31T08:15:00.123Z`
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_milliseconds_and_utc() {
        assert_eq!(
            Timestamp::from_millis(1_769_847_300_120).to_string(),
            "2026-01-31T08:15:00.120Z"
        );
        assert_eq!(
            Timestamp::from_millis(0).to_string(),
            "1970-01-01T00:00:00.000Z"
        );
    }

    #[test]
    fn reads_back_what_it_prints() {
        let t = Timestamp::from_millis(1_769_847_300_123);
        assert_eq!(Timestamp::parse(&t.to_string()), Some(t));
    }
}
