//! Throttle of repeated log lines: one a minute, with the number of suppressed events.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Throttle of one kind of line.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_line: Option<Instant>,
    suppressed: u64,
}

impl Throttle {
    /// Makes a throttle whose first line is due.
    pub const fn new() -> Self {
        Self(Mutex::new(State {
            last_line: None,
            suppressed: 0,
        }))
    }

    /// Counts an event. Returns the number of events since the last line, when a line is due.
    pub fn count(&self) -> Option<u64> {
        self.count_at(Instant::now())
    }

    fn count_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        state.suppressed = state.suppressed.saturating_add(1);
        if state
            .last_line
            .is_some_and(|last| now.saturating_duration_since(last) < LINE_INTERVAL)
        {
            return None;
        }
        state.last_line = Some(now);
        Some(std::mem::take(&mut state.suppressed))
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
