//! The clock of waits: it goes on evenly where the wall clock is set.
//!
//! What waits for a distance in time (a retry, a poll, a lease) is due by this clock, so that a
//! wall clock that jumps makes it neither late nor early while the process runs. What is told to
//! people, and what is due at a time of day, goes by the wall clock. Both read the same while the
//! wall clock does not jump. A new process begins with the wall clock as it then is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crate::Timestamp;

/// The longest step of the wall clock that is no jump: the clock of waits follows it.
const MAX_STEP_US: i64 = 5_000_000;

/// A clock that goes on with the monotonic one.
struct Clock {
    origin: Instant,
    /// Wall clock at `origin`, in microseconds since 1970.
    base_us: AtomicI64,
    /// How far the wall clock is ahead of it by its jumps, in microseconds.
    ahead_us: AtomicI64,
}

static CLOCK: OnceLock<Clock> = OnceLock::new();

fn clock() -> &'static Clock {
    CLOCK.get_or_init(|| Clock::starting_at(micros(Timestamp::now())))
}

fn micros(timestamp: Timestamp) -> i64 {
    timestamp.as_millis().saturating_mul(1_000)
}

/// A jump of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// True when the clock was set forward.
    pub is_forward: bool,
    /// How far, to the second.
    pub by: Duration,
}

impl Timestamp {
    /// Returns the present instant by the clock of waits. It is never behind the wall clock but for
    /// jumps, so that what is due by the one is due by the other.
    pub fn steady() -> Self {
        clock().at(Instant::now())
    }

    /// Converts an instant of the wall clock to the clock of waits, as far as the jumps of the wall
    /// clock are known.
    #[must_use]
    pub fn to_steady(self) -> Self {
        self.minus(clock().ahead_us.load(Ordering::Relaxed))
    }

    /// Converts an instant of the clock of waits to the wall clock, as far as its jumps are known.
    #[must_use]
    pub fn to_wall(self) -> Self {
        self.minus(-clock().ahead_us.load(Ordering::Relaxed))
    }

    fn minus(self, us: i64) -> Self {
        Self::from_millis(self.as_millis().saturating_sub(us / 1_000))
    }
}

/// Compares the clocks, and returns the jump of the wall clock since the last call. To be called
/// every second or so: steps of up to 5 s between two calls are followed.
pub fn check() -> Option<Jump> {
    clock().compare(micros(Timestamp::now()), Instant::now())
}

impl Clock {
    fn starting_at(wall_us: i64) -> Self {
        // The wall clock is read in whole milliseconds, rounded down.
        Self {
            origin: Instant::now(),
            base_us: AtomicI64::new(wall_us.saturating_add(1_000)),
            ahead_us: AtomicI64::new(0),
        }
    }

    fn at(&self, now: Instant) -> Timestamp {
        Timestamp::from_millis(self.at_us(now) / 1_000)
    }

    fn at_us(&self, now: Instant) -> i64 {
        let passed = i64::try_from(now.saturating_duration_since(self.origin).as_micros())
            .unwrap_or(i64::MAX);
        self.base_us.load(Ordering::Relaxed).saturating_add(passed)
    }

    fn compare(&self, wall_us: i64, now: Instant) -> Option<Jump> {
        let ahead = self.ahead_us.load(Ordering::Relaxed);
        let step = wall_us
            .saturating_add(1_000)
            .saturating_sub(self.at_us(now))
            .saturating_sub(ahead);
        if step.abs() <= MAX_STEP_US {
            self.base_us.fetch_add(step, Ordering::Relaxed);
            return None;
        }
        self.ahead_us.fetch_add(step, Ordering::Relaxed);
        Some(Jump {
            is_forward: step > 0,
            by: Duration::from_secs((step.unsigned_abs() + 500_000) / 1_000_000),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_US: i64 = 1_769_860_800_000_000;
    const HOUR_US: i64 = 3_600_000_000;

    fn millis(clock: &Clock, passed: Duration) -> i64 {
        clock.at(clock.origin + passed).as_millis()
    }

    #[test]
    fn it_goes_on_evenly_where_the_wall_clock_jumps() {
        let clock = Clock::starting_at(NOON_US);
        let second = Duration::from_secs(1);
        let begun = millis(&clock, Duration::ZERO);
        let back = NOON_US + 1_000_000 - 2 * HOUR_US;
        let jump = clock.compare(back, clock.origin + second);
        assert_eq!(
            jump,
            Some(Jump {
                is_forward: false,
                by: Duration::from_secs(7_200)
            })
        );
        assert_eq!(millis(&clock, second) - begun, 1_000);
        assert_eq!(
            clock.compare(back + 1_000_000, clock.origin + 2 * second),
            None
        );
        assert_eq!(millis(&clock, 2 * second) - begun, 2_000);
        let jump = clock.compare(NOON_US + 3_000_000, clock.origin + 3 * second);
        assert_eq!(
            jump,
            Some(Jump {
                is_forward: true,
                by: Duration::from_secs(7_200)
            })
        );
        assert_eq!(clock.ahead_us.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn it_follows_steps_that_are_no_jumps() {
        let clock = Clock::starting_at(NOON_US);
        let begun = millis(&clock, Duration::ZERO);
        assert_eq!(clock.compare(NOON_US + 4_000_000, clock.origin), None);
        assert_eq!(millis(&clock, Duration::ZERO) - begun, 4_000);
        assert_eq!(clock.ahead_us.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn it_does_not_lag_the_wall_clock_and_converts_back_and_forth() {
        let wall = Timestamp::now();
        assert!(Timestamp::steady() >= wall);
        assert_eq!(wall.to_steady().to_wall(), wall);
    }
}
