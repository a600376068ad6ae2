//! Repeats of the log of which there may be very many: one a minute, with their number.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(60);

/// A kind of lines.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<Instant>,
    /// Number since then.
    since: u64,
}

impl Repeats {
    /// Counts one; returns the number that a line is due for.
    pub fn count(&mut self) -> Option<u64> {
        let now = Instant::now();
        self.since += 1;
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < PAUSE)
        {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_due_once_a_minute() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.count(), Some(1));
        assert_eq!(repeats.count(), None);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(repeats.count(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(repeats.count(), Some(3));
    }
}
