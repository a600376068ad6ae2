//! How many calls a second one connector is given: a bucket that fills steadily and holds what one second brings, so that
//! t seconds see at most rate x (t + 1) calls. Pure: the time is handed in.

use std::time::{Duration, Instant};

/// A bucket, by the instant at which it will be full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    interval: Duration,
    /// How far the calls that have a place may run ahead.
    ahead: Duration,
    full_at: Option<Instant>,
}

/// No call waits longer for the one before it.
const SLOWEST: f64 = 1.0 / 86_400.0;

impl Rate {
    pub fn new(per_second: f64) -> Self {
        let per_second = per_second.max(SLOWEST);
        let interval = Duration::from_secs_f64(1.0 / per_second);
        let ahead = interval.mul_f64((per_second - 1.0).max(0.0));
        Self { interval, ahead, full_at: None }
    }

    /// Takes a place for one call; how long it has to wait for it.
    pub fn take(&mut self, now: Instant) -> Duration {
        let begins = self.full_at.map_or(now, |full_at| full_at.max(now));
        self.full_at = Some(begins + self.interval);
        begins.saturating_duration_since(now).saturating_sub(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(per_second: f64, calls: usize) -> Vec<u128> {
        let (mut rate, now) = (Rate::new(per_second), Instant::now());
        (0..calls).map(|_| rate.take(now).as_millis()).collect()
    }

    #[test]
    fn a_second_s_worth_goes_at_once_and_the_rest_in_its_turn() {
        assert_eq!(waits(4.0, 7), [0, 0, 0, 0, 250, 500, 750]);
        assert_eq!(waits(1.0, 3), [0, 1000, 2000]);
        assert_eq!(waits(0.5, 3), [0, 2000, 4000]);
    }

    #[test]
    fn what_is_not_used_is_not_saved_up() {
        let (mut rate, begin) = (Rate::new(2.0), Instant::now());
        rate.take(begin);
        let later = begin + Duration::from_secs(60);
        let waits = [(); 3].map(|()| rate.take(later).as_millis());
        assert_eq!(waits, [0, 0, 500]);
    }
}
