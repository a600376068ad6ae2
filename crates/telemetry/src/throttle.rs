//! Lines of the log that would be written over and over: one a minute, with the number of those
//! that were not.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// The lines of one kind.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    told: Option<Instant>,
    untold: u64,
}

impl Throttle {
    /// Makes one whose first line is due.
    pub const fn new() -> Self {
        Self(Mutex::new(State {
            told: None,
            untold: 0,
        }))
    }

    /// Counts an event; returns the number of events since the last line where a line is due.
    pub fn count(&self) -> Option<u64> {
        self.count_at(Instant::now())
    }

    fn count_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.untold = state.untold.saturating_add(1);
        if state
            .told
            .is_some_and(|told| now.saturating_duration_since(told) < PAUSE)
        {
            return None;
        }
        state.told = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_a_minute_and_has_the_number_of_those_that_were_not() {
        let throttle = Throttle::new();
        let begun = Instant::now();
        let count = |seconds| throttle.count_at(begun + Duration::from_secs(seconds));
        assert_eq!(count(0), Some(1));
        assert_eq!(count(1), None);
        assert_eq!(count(59), None);
        assert_eq!(count(60), Some(3));
        assert_eq!(count(61), None);
    }
}
