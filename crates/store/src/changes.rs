//! When to look at the database again. Other processes that share one change it without a word to
//! those who look from time to time; where this process alone writes, nothing is to be seen before
//! it has written.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The longest rest where only this process writes: somebody may have put another file in the place
/// of the database, and a clock that is set forward makes due what was not.
const LONGEST: Duration = Duration::from_secs(5);

/// What wakes one who looks. Each has its own.
#[derive(Debug)]
pub struct Changes(Option<watch::Receiver<()>>);

impl Changes {
    /// Told by `written` of what this process writes; nobody tells of what others do.
    pub(crate) fn new(written: Option<&watch::Sender<()>>) -> Self {
        Self(written.map(watch::Sender::subscribe))
    }

    /// Rests until another look may find something: for `every`, and where only this process
    /// writes, until it has written something since the last rest was over, 5 s at most.
    pub async fn next(&mut self, every: Duration) {
        sleep(every).await;
        if let Some(written) = &mut self.0 {
            // A store that is gone tells of nothing: it is time to look then, too.
            let _ = timeout(LONGEST.saturating_sub(every), written.changed()).await;
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
            [2 * SECOND, SECOND, LONGEST],
            "what is written meanwhile counts for the next"
        );
    }
}
