//! Active calls that may write sealed values. A call that began before a change of keys may have
//! sealed a value under the former key, or read one that it will write back.

use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Counts calls from their begin to their end.
#[derive(Debug, Default)]
pub struct ActiveCalls(Mutex<TaskTracker>);

impl ActiveCalls {
    /// Counts one call until what it returns is dropped.
    pub fn begin(&self) -> TaskTrackerToken {
        self.0.lock().token()
    }

    /// Waits until every call has ended that has begun by now; others may begin meanwhile. Returns
    /// `false` where that takes longer than `within`.
    pub async fn ended(&self, within: Duration) -> bool {
        let before = std::mem::take(&mut *self.0.lock());
        before.close();
        let ended = tokio::time::timeout(within, before.wait()).await.is_ok();
        if !ended {
            // They are waited for the next time.
            let after = self.begin();
            TaskTracker::new().spawn(async move {
                before.wait().await;
                drop(after);
            });
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_that_began_before_are_waited_for_and_later_ones_are_not() {
        let calls = ActiveCalls::default();
        assert!(calls.ended(Duration::from_secs(1)).await);
        let before = calls.begin();
        assert!(!calls.ended(Duration::from_secs(1)).await);
        assert!(
            !calls.ended(Duration::from_secs(1)).await,
            "it is active all the same"
        );
        let mut waiting = Box::pin(calls.ended(Duration::from_secs(60)));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        let _later = calls.begin();
        drop(before);
        assert!(waiting.await);
    }
}
