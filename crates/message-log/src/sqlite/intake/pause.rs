//! When the tables are tried again after they did not take what was answered, and whether a try waits for another program.

use std::time::{Duration, Instant};

/// From the first try that failed to the next one; then twice as long each time,
const FIRST: Duration = Duration::from_millis(200);
/// and no longer than this.
const LONGEST: Duration = Duration::from_secs(5);

/// Tries that failed one after another.
#[derive(Default)]
pub(super) struct Pause(Option<Failed>);

#[derive(Clone, Copy)]
struct Failed {
    pause: Duration,
    until: Instant,
}

impl Pause {
    /// A try failed. Those that are made before their time put off nothing.
    pub fn failed(&mut self, now: Instant) {
        let pause = match self.0 {
            None => FIRST,
            Some(last) if last.until > now => return,
            Some(last) => LONGEST.min(last.pause * 2),
        };
        self.0 = Some(Failed { pause, until: now + pause });
    }

    /// One went well.
    pub fn end(&mut self) {
        self.0 = None;
    }

    /// Until the next try.
    pub fn left(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |last| last.until.saturating_duration_since(now))
    }

    /// How long a try waits for another program that holds the file, where it waits `patience` when all is well: each would hold
    /// up whoever writes, so that only the first one does.
    pub fn waits(&self, patience: Duration) -> Duration {
        if self.0.is_some() { Duration::ZERO } else { patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let (mut pause, mut now) = (Pause::default(), Instant::now());
        let mut failed = |pause: &mut Pause| {
            pause.failed(now);
            // One in between, such as of an operation that does not wait.
            pause.failed(now);
            let left = pause.left(now);
            now += left;
            assert_eq!(pause.left(now), Duration::ZERO);
            left.as_millis()
        };
        assert_eq!([0; 7].map(|_| failed(&mut pause)), [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        pause.end();
        assert_eq!(failed(&mut pause), 200);
    }

    #[test]
    fn nobody_waits_for_a_lock_after_one_who_waited_in_vain() {
        let (mut pause, now, patience) = (Pause::default(), Instant::now(), Duration::from_secs(7));
        assert_eq!(pause.waits(patience), patience);
        pause.failed(now);
        assert_eq!(pause.waits(patience), Duration::ZERO);
        pause.end();
        assert_eq!(pause.waits(patience), patience);
    }
}
