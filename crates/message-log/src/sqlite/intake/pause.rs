//! When the tables are tried again after they did not take what was answered, and whether a try
//! waits for another program.

use std::time::{Duration, Instant};

/// From the first try that failed to the next one; then twice as long each time,
const FIRST: Duration = Duration::from_millis(200);
/// and no longer than this.
const LONGEST: Duration = Duration::from_secs(5);
/// From any try to one that somebody waits for.
const WAITED_FOR: Duration = Duration::from_millis(200);

/// Tries that failed one after another.
#[derive(Default)]
pub(super) struct Pause(Option<Failed>);

#[derive(Clone, Copy)]
struct Failed {
    last: Instant,
    pause: Duration,
    until: Instant,
}

impl Pause {
    /// A try failed; says whether its time had come. One that is made before puts off only what
    /// somebody waits for.
    pub fn failed(&mut self, now: Instant) -> bool {
        let pause = match self.0 {
            Some(failed) if failed.until > now => {
                self.0 = Some(Failed {
                    last: now,
                    ..failed
                });
                return false;
            }
            Some(failed) => LONGEST.min(failed.pause * 2),
            None => FIRST,
        };
        self.0 = Some(Failed {
            last: now,
            pause,
            until: now + pause,
        });
        true
    }

    /// One went well.
    pub fn end(&mut self) {
        self.0 = None;
    }

    /// Until the next try.
    pub fn left(&self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |failed| {
            failed.until.saturating_duration_since(now)
        })
    }

    /// Until the next try, if somebody waits for it.
    pub fn left_for_one_who_waits(&self, now: Instant) -> Duration {
        let left = self.0.map_or(Duration::ZERO, |failed| {
            (failed.last + WAITED_FOR).saturating_duration_since(now)
        });
        left.min(self.left(now))
    }

    /// How long a try waits for another program that holds the file, where it waits `patience` when
    /// all is well: each would hold up whoever writes, so that only the first one does.
    pub fn waits(&self, patience: Duration) -> Duration {
        if self.0.is_some() {
            Duration::ZERO
        } else {
            patience
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_begin_anew() {
        let mut pause = Pause::default();
        let mut now = Instant::now();
        let mut failed = |pause: &mut Pause| {
            assert!(pause.failed(now));
            // One in between, such as of an operation that does not wait.
            assert!(!pause.failed(now));
            let left = pause.left(now);
            now += left;
            assert_eq!(pause.left(now), Duration::ZERO);
            left.as_millis()
        };
        assert_eq!(
            [0; 7].map(|_| failed(&mut pause)),
            [200, 400, 800, 1_600, 3_200, 5_000, 5_000]
        );
        pause.end();
        assert_eq!(failed(&mut pause), 200);
    }

    #[test]
    fn who_waits_has_a_try_soon_however_long_the_pause_is() {
        let mut pause = Pause::default();
        let mut now = Instant::now();
        assert_eq!(pause.left_for_one_who_waits(now), Duration::ZERO);
        for _ in 0..7 {
            now += pause.left(now);
            pause.failed(now);
        }
        let until = now + LONGEST;
        while pause.left(now) > WAITED_FOR {
            assert_eq!(pause.left_for_one_who_waits(now), WAITED_FOR);
            now += WAITED_FOR;
            assert_eq!(pause.left_for_one_who_waits(now), Duration::ZERO);
            pause.failed(now);
        }
        now += WAITED_FOR / 2;
        pause.failed(now);
        assert_eq!(
            now + pause.left_for_one_who_waits(now),
            until,
            "that try is for all"
        );
    }

    #[test]
    fn nobody_waits_for_a_lock_after_one_who_waited_in_vain() {
        let mut pause = Pause::default();
        let now = Instant::now();
        let patience = Duration::from_secs(7);
        assert_eq!(pause.waits(patience), patience);
        pause.failed(now);
        assert_eq!(pause.waits(patience), Duration::ZERO);
        pause.end();
        assert_eq!(pause.waits(patience), patience);
    }
}
