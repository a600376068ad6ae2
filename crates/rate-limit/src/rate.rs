//! Rates in whole calls per period. The period is a second for a whole number of calls per second.
//! For other rates it is longer or shorter.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::MICROTOKENS_PER_TOKEN;

/// Number of calls per period, which is also the size of the bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// 0 for no limit.
    pub calls: u32,
    pub period: Period,
}

/// A period in microseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Period(u64);

/// Longest period of one call, in seconds: a day.
const MAX_SECS_PER_CALL: f64 = 86_400.0;

impl Rate {
    /// No limit.
    pub const NONE: Self = Self::per_second(0);

    pub const fn per_second(calls: u32) -> Self {
        Self {
            calls,
            period: Period::SECOND,
        }
    }

    /// Returns the rate of a number of calls per second, which need not be whole. 2.5 are two calls
    /// in 800 ms, so that t seconds see at most 2.5 × (t + 1) calls; 0.1 are one call in ten
    /// seconds.
    pub fn from_calls_per_second(per_second: f64) -> Self {
        let per_second = per_second.max(1.0 / MAX_SECS_PER_CALL);
        let calls = (per_second.floor().min(f64::from(u32::MAX))).max(1.0);
        let period =
            Duration::try_from_secs_f64(calls / per_second).unwrap_or(Duration::from_secs(1));
        let micros = u64::try_from(period.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        Self {
            calls: calls as u32,
            period: Period(micros.max(1)),
        }
    }
}

impl Period {
    const SECOND: Self = Self(1_000_000);

    /// Returns the microseconds; at least one, since a period that was read may be zero.
    pub(crate) fn as_micros(self) -> u64 {
        self.0.max(1)
    }

    pub(crate) fn as_duration(self) -> Duration {
        Duration::from_micros(self.as_micros())
    }

    /// Returns the time in which a bucket gains `microtokens` at `rate / divisor` tokens per
    /// period; `None` when it gains none.
    pub(crate) fn time_to_gain(
        self,
        microtokens: u64,
        rate: u32,
        divisor: u32,
    ) -> Option<Duration> {
        let all = u128::from(microtokens)
            * u128::from(self.as_micros())
            * u128::from(divisor.max(1))
            * 1_000;
        let nanos = (rate > 0)
            .then(|| all.div_ceil(u128::from(rate) * u128::from(MICROTOKENS_PER_TOKEN)))?;
        Some(Duration::from_nanos(
            u64::try_from(nanos).unwrap_or(u64::MAX),
        ))
    }
}

impl Default for Period {
    fn default() -> Self {
        Self::SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_so_many_whole_calls_in_a_period() {
        for (per_second, calls, micros) in [
            (1.0, 1, 1_000_000),
            (20.0, 20, 1_000_000),
            (100_000.0, 100_000, 1_000_000),
            (2.5, 2, 800_000),
            (1.999, 1, 500_251),
            (0.5, 1, 2_000_000),
            (1.0 / 3_600.0, 1, 3_600_000_000),
            (1e-9, 1, 86_400_000_000),
            (1e300, u32::MAX, 1),
        ] {
            assert_eq!(
                Rate::from_calls_per_second(per_second),
                Rate {
                    calls,
                    period: Period(micros)
                },
                "{per_second}"
            );
        }
    }

    #[test]
    fn tokens_come_in_over_the_period() {
        assert_eq!(
            Rate::from_calls_per_second(20.0)
                .period
                .time_to_gain(MICROTOKENS_PER_TOKEN, 20, 1),
            Some(Duration::from_millis(50))
        );
        assert_eq!(
            Rate::from_calls_per_second(2.5)
                .period
                .time_to_gain(MICROTOKENS_PER_TOKEN, 2, 1),
            Some(Duration::from_millis(400))
        );
        assert_eq!(
            Rate::from_calls_per_second(0.5)
                .period
                .time_to_gain(MICROTOKENS_PER_TOKEN / 2, 1, 3),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            Rate::from_calls_per_second(1.0)
                .period
                .time_to_gain(MICROTOKENS_PER_TOKEN, 0, 1),
            None
        );
    }
}
