//! The time of the next poll of the database. Other processes that share one change it without
//! notice; where this process alone writes, a poll finds nothing before it has written.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Longest time between two polls where only this process writes: the file of the database may have
/// been replaced, and a clock that is set forward makes more rows due.
const MAX_IDLE: Duration = Duration::from_secs(5);

/// Wakes a poller when the database may have changed. Each poller has its own.
#[derive(Debug)]
pub struct Changes(Option<watch::Receiver<()>>);

impl Changes {
    /// `written` changes with every write of this process; without it, other processes write too.
    pub(crate) fn new(written: Option<&watch::Sender<()>>) -> Self {
        Self(written.map(watch::Sender::subscribe))
    }

    /// Waits until another poll may find something: for `every`, and where only this process
    /// writes, until it has written since the last wait was over, 5 s at most.
    pub async fn next(&mut self, every: Duration) {
        sleep(every).await;
        if let Some(written) = &mut self.0 {
            // A store that is gone sends nothing; the wait ends then, too.
            let _ = timeout(MAX_IDLE.saturating_sub(every), written.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn rests(changes: &mut Changes) -> Duration {
        let begun = Instant::now();
        changes.next(SECOND).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn where_others_write_each_rest_has_its_length() {
        let mut changes = Changes::new(None);
        assert_eq!(
            [rests(&mut changes).await, rests(&mut changes).await],
            [SECOND; 2]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_else_writes_it_rests_until_this_process_has_written() {
        let written = watch::Sender::new(());
        let mut changes = Changes::new(Some(&written));
        let written = async {
            sleep(2 * SECOND).await;
            written.send_replace(());
            sleep(SECOND / 2).await;
            written.send_replace(());
            std::future::pending::<()>().await
        };
        let rested = async {
            let mut rested = Vec::new();
            for _ in 0..3 {
                rested.push(rests(&mut changes).await);
            }
            rested
        };
        let rested = tokio::select! { rested = rested => rested, () = written => Vec::new() };
        assert_eq!(
            rested,
            [2 * SECOND, SECOND, MAX_IDLE],
            "what is written meanwhile counts for the next"
        );
    }
}
