//! Decides when pending writes are applied to the tables: in batches while all is well, and with
//! a growing backoff while they cannot be written.

use std::time::{Duration, Instant};

use kanat_model::backoff::Backoff;

/// Number of pending writes from which they are applied at once.
const MAX_PENDING_WRITES: usize = 256;
/// Journal bytes of pending writes from which they are applied at once.
const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;
/// Time without a new operation after which pending writes are applied.
const IDLE_TIMEOUT: Duration = Duration::from_millis(5);
/// Age of the oldest pending write at which all are applied in any case.
const MAX_PENDING_AGE: Duration = Duration::from_millis(100);
/// Pauses after failed attempts.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(200),
    max: Duration::from_secs(5),
};
/// Pause between a failed attempt and the next one that a reader asks for.
const READER_BACKOFF: Duration = Duration::from_millis(200);

/// Schedule of the attempts to apply pending writes.
#[derive(Default)]
pub(super) struct ApplyPolicy {
    /// Journal bytes of the pending writes.
    bytes: usize,
    /// Arrival of the oldest pending write.
    oldest: Option<Instant>,
    /// Attempts that have failed since one that succeeded.
    failures: Option<Failures>,
}

/// Failed attempts in a row.
#[derive(Clone, Copy)]
struct Failures {
    last_attempt: Instant,
    count: u32,
    /// Instant from which the next attempt is due: the end of the backoff.
    next_attempt_at: Instant,
}

impl ApplyPolicy {
    /// Returns the schedule of a start at which pending writes could not be written to the tables.
    pub fn after_failure(now: Instant) -> Self {
        let mut policy = Self {
            oldest: Some(now),
            ..Self::default()
        };
        policy.record_failure(now);
        policy
    }

    /// Counts a journal record of `bytes` whose operations are pending from now on.
    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.oldest.get_or_insert_with(Instant::now);
    }

    /// Records an attempt that succeeded, which resets the schedule.
    pub fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Records an attempt that failed, and returns whether it was due. An attempt before its time
    /// does not extend the backoff. It only restarts the pause of readers.
    pub fn record_failure(&mut self, now: Instant) -> bool {
        let count = match &mut self.failures {
            Some(failures) if failures.next_attempt_at > now => {
                failures.last_attempt = now;
                return false;
            }
            Some(failures) => failures.count.saturating_add(1),
            None => 1,
        };
        self.failures = Some(Failures {
            last_attempt: now,
            count,
            next_attempt_at: now + BACKOFF.delay(count),
        });
        true
    }

    /// Returns whether it is time to apply `pending` writes.
    pub fn is_due(&self, pending: usize, now: Instant) -> bool {
        let is_large = pending >= MAX_PENDING_WRITES || self.bytes >= MAX_PENDING_BYTES;
        let is_old = self
            .oldest
            .is_some_and(|oldest| now.duration_since(oldest) >= MAX_PENDING_AGE);
        (is_large || is_old) && self.retry_delay(now).is_zero()
    }

    /// Returns how long pending writes may wait for further operations.
    pub fn idle_timeout(&self, now: Instant) -> Duration {
        self.retry_delay(now).max(IDLE_TIMEOUT)
    }

    /// Returns the time until the next attempt for a reader that waits for it.
    pub fn reader_retry_delay(&self, now: Instant) -> Duration {
        let delay = self.failures.map_or(Duration::ZERO, |failures| {
            (failures.last_attempt + READER_BACKOFF).saturating_duration_since(now)
        });
        delay.min(self.retry_delay(now))
    }

    /// Returns how long an attempt waits for the lock of another program: `timeout`, or not at all
    /// once an attempt has failed, because each wait delays all callers of the writer.
    pub fn lock_timeout(&self, timeout: Duration) -> Duration {
        if self.failures.is_some() {
            Duration::ZERO
        } else {
            timeout
        }
    }

    /// Returns the time until the next attempt.
    fn retry_delay(&self, now: Instant) -> Duration {
        self.failures.map_or(Duration::ZERO, |failures| {
            failures.next_attempt_at.saturating_duration_since(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_a_bound_and_starts_again_after_a_success() {
        let mut policy = ApplyPolicy::default();
        let mut now = Instant::now();
        let mut failed = |policy: &mut ApplyPolicy| {
            assert!(policy.record_failure(now));
            // An attempt in between, such as that of an operation that does not wait.
            assert!(!policy.record_failure(now));
            let delay = policy.retry_delay(now);
            now += delay;
            assert_eq!(policy.retry_delay(now), Duration::ZERO);
            delay.as_millis()
        };
        assert_eq!(
            [0; 7].map(|_| failed(&mut policy)),
            [200, 400, 800, 1_600, 3_200, 5_000, 5_000]
        );
        policy.record_success();
        assert_eq!(failed(&mut policy), 200);
    }

    #[test]
    fn a_reader_that_waits_has_an_attempt_soon_however_long_the_backoff_is() {
        let mut policy = ApplyPolicy::default();
        let mut now = Instant::now();
        assert_eq!(policy.reader_retry_delay(now), Duration::ZERO);
        for _ in 0..7 {
            now += policy.retry_delay(now);
            policy.record_failure(now);
        }
        let until = now + BACKOFF.max;
        while policy.retry_delay(now) > READER_BACKOFF {
            assert_eq!(policy.reader_retry_delay(now), READER_BACKOFF);
            now += READER_BACKOFF;
            assert_eq!(policy.reader_retry_delay(now), Duration::ZERO);
            policy.record_failure(now);
        }
        now += READER_BACKOFF / 2;
        policy.record_failure(now);
        assert_eq!(
            now + policy.reader_retry_delay(now),
            until,
            "that attempt is for all"
        );
    }

    #[test]
    fn only_the_first_attempt_waits_for_the_lock_of_another_program() {
        let mut policy = ApplyPolicy::default();
        let now = Instant::now();
        let timeout = Duration::from_secs(7);
        assert_eq!(policy.lock_timeout(timeout), timeout);
        policy.record_failure(now);
        assert_eq!(policy.lock_timeout(timeout), Duration::ZERO);
        policy.record_success();
        assert_eq!(policy.lock_timeout(timeout), timeout);
    }
}
