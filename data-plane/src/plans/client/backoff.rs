//! Failures in a row of the plan stream, by which its next connection is delayed.

use std::time::Duration;

use kanat_model::backoff::Backoff;

/// Delays between connections.
pub const RECONNECT: Backoff = Backoff {
    first: Duration::from_millis(200),
    max: Duration::from_secs(30),
};

/// Returns the number of failures in a row, from 1, after a stream that lasted for `stream_lasted`.
/// If that is longer than the next delay, the count restarts at 1, so that control planes that are
/// restarted in turn keep no node waiting.
pub fn next_failure_count(before: u32, stream_lasted: Duration) -> u32 {
    let next = before.saturating_add(1);
    if stream_lasted > RECONNECT.delay(next) {
        1
    } else {
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_held_longer_than_the_wait_begins_the_count_anew() {
        let seconds = Duration::from_secs;
        assert_eq!(next_failure_count(0, Duration::ZERO), 1);
        assert_eq!(next_failure_count(1, Duration::ZERO), 2);
        assert_eq!(
            next_failure_count(4, seconds(4)),
            1,
            "the fifth failure costs 3.2 s at most"
        );
        assert_eq!(next_failure_count(4, seconds(3)), 5);
        assert_eq!(next_failure_count(20, seconds(30)), 21);
        assert_eq!(next_failure_count(20, seconds(31)), 1);
        assert_eq!(next_failure_count(u32::MAX, Duration::ZERO), u32::MAX);
    }
}
