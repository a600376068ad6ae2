//! Minimum rate of a body: a sender has to deliver 1 KiB/s after the first seconds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Longest wait for a sender, at the beginning and in one go.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Minimum rate, in bytes per second.
const MIN_RATE: u32 = 1 << 10;

/// Token bucket of time: waiting consumes it, bytes refill it. Time in which the reader does not
/// poll is not counted.
#[derive(Debug)]
pub(super) struct Pace {
    left: Duration,
    /// True when the last poll found nothing.
    was_asked: bool,
    wait: Option<Wait>,
}

/// Wait for a sender that has nothing yet.
#[derive(Debug)]
struct Wait {
    since: Instant,
    /// Ends when the bucket is empty.
    end: Pin<Box<Sleep>>,
}

impl Pace {
    pub fn new() -> Self {
        Self {
            left: MAX_WAIT,
            was_asked: false,
            wait: None,
        }
    }

    /// Counts `bytes` that arrived.
    pub fn came(&mut self, bytes: usize) {
        self.was_asked = false;
        // Only a wait has consumed the bucket.
        let Some(wait) = self.wait.take() else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(MIN_RATE << 8);
        let earned = Duration::from_secs(1) * bytes / MIN_RATE;
        self.left = self
            .left
            .saturating_sub(wait.since.elapsed())
            .saturating_add(earned)
            .min(MAX_WAIT);
    }

    /// Waits for the sender. Ready when it is too slow.
    pub fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.was_asked {
            // Most bodies are ready when they are polled, and need no timer.
            self.was_asked = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let left = self.left;
        let wait = self.wait.get_or_insert_with(|| {
            let since = Instant::now();
            Wait {
                since,
                end: Box::pin(tokio::time::sleep_until(since + left)),
            }
        });
        wait.end.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the whole seconds after which a sender is too slow that brings `bytes` every
    /// `seconds`; none within ten minutes.
    async fn too_slow(bytes: usize, seconds: u64) -> Option<u64> {
        let begun = Instant::now();
        let mut pace = Pace::new();
        while begun.elapsed() < Duration::from_secs(600) {
            let slow = std::future::poll_fn(|cx| pace.poll_too_slow(cx));
            if tokio::time::timeout(Duration::from_secs(seconds), slow)
                .await
                .is_ok()
            {
                return Some(begun.elapsed().as_secs());
            }
            pace.came(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_brings_a_kibibyte_a_second_after_five_seconds() {
        assert_eq!(too_slow(0, 1).await, Some(5));
        assert_eq!(too_slow(1, 1).await, Some(5));
        assert_eq!(too_slow(512, 1).await, Some(9));
        assert_eq!(too_slow(1024, 1).await, None);
        assert_eq!(too_slow(4 << 10, 4).await, None);
        assert_eq!(too_slow(1 << 20, 6).await, Some(5));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_came_early_do_not_pay_for_a_later_silence() {
        let mut pace = Pace::new();
        pace.came(64 << 20);
        let begun = Instant::now();
        std::future::poll_fn(|cx| pace.poll_too_slow(cx)).await;
        assert_eq!(begun.elapsed().as_secs(), 5);
    }
}
