//! Delay before the next connection. It has full jitter, so that nodes which lost one control plane
//! together do not come back together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Longest delay after the first failure.
const FIRST_DELAY: Duration = Duration::from_millis(200);
/// Longest delay after any number of failures.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Returns the number of failures in a row (from 1) after a stream that lasted for `held`. A stream
/// that outlasted the delay of the next failure begins the count anew: control planes that are
/// restarted in turn keep no node waiting.
pub fn failures(before: u32, held: Duration) -> u32 {
    let next = before.saturating_add(1);
    if held > longest(next) { 1 } else { next }
}

/// Returns the delay after a number of failures in a row (from 1), for a `jitter` from 0 to 1.
pub fn delay(failures: u32, jitter: f64) -> Duration {
    longest(failures).mul_f64(jitter.clamp(0.0, 1.0))
}

fn longest(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_DELAY * (1 << doublings)).min(MAX_DELAY)
}

/// Returns a random number from 0 to 1: the standard library seeds every `RandomState` differently.
pub fn jitter() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_from_200_milliseconds_to_30_seconds() {
        assert_eq!(delay(1, 1.0), Duration::from_millis(200));
        assert_eq!(delay(2, 1.0), Duration::from_millis(400));
        assert_eq!(delay(3, 0.5), Duration::from_millis(400));
        assert_eq!(delay(9, 1.0), Duration::from_secs(30));
        assert_eq!(delay(u32::MAX, 1.0), Duration::from_secs(30));
        assert_eq!(delay(9, 0.0), Duration::ZERO);
    }

    #[test]
    fn a_stream_that_held_longer_than_the_wait_begins_the_count_anew() {
        let seconds = Duration::from_secs;
        assert_eq!(failures(0, Duration::ZERO), 1);
        assert_eq!(failures(1, Duration::ZERO), 2);
        assert_eq!(
            failures(4, seconds(4)),
            1,
            "the fifth failure costs 3.2 s at most"
        );
        assert_eq!(failures(4, seconds(3)), 5);
        assert_eq!(failures(20, seconds(30)), 21);
        assert_eq!(failures(20, seconds(31)), 1);
        assert_eq!(failures(u32::MAX, Duration::ZERO), u32::MAX);
    }

    #[test]
    fn jitter_stays_in_its_bounds_and_differs() {
        let draws: Vec<_> = (0..100).map(|_| jitter()).collect();
        assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw != draws[0]));
    }
}
