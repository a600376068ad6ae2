//! Exponential backoff: the time to wait before an operation that failed is tried again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Delays that double with each failure in a row, up to a bound.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    /// Delay after the first failure.
    pub first: Duration,
    pub max: Duration,
}

impl Backoff {
    /// Returns the delay after `failures` in a row, counted from 1.
    pub fn delay(self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }

    /// Returns a random part of [`delay`](Self::delay), so that clients that failed together do not
    /// come back together ("full jitter").
    pub fn jittered(self, failures: u32) -> Duration {
        self.delay(failures).mul_f64(jitter())
    }
}

/// Returns a random number from 0 to 1. The standard library seeds every `RandomState` differently.
pub fn jitter() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_bound() {
        let backoff = Backoff {
            first: Duration::from_millis(200),
            max: Duration::from_secs(5),
        };
        let delays = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|failures| {
            let jittered = backoff.jittered(failures);
            assert!(jittered <= backoff.delay(failures), "{jittered:?}");
            backoff.delay(failures).as_millis()
        });
        assert_eq!(
            delays,
            [200, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]
        );
    }

    #[test]
    fn jitter_stays_in_its_bounds_and_differs() {
        let draws: Vec<_> = (0..100).map(|_| jitter()).collect();
        assert!(draws.iter().all(|draw| (0.0..=1.0).contains(draw)));
        assert!(draws.iter().any(|draw| *draw != draws[0]));
    }
}
