//! Runs a job when it is due, and when the time at which it is due may have changed. Every control
//! plane does.

use std::time::Duration;

use kanat_model::{Error, Timestamp};
use kanat_store::Store;
use tokio::time::sleep;

/// Poll interval where another control plane may have changed the time at which the job is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Calls `work` for ever; it does the work that is due and returns the next due time. After a
/// failure it is called again at the next poll, and `complaint` is logged once.
pub async fn run<S, F>(store: &Store, complaint: &str, work: S)
where
    S: Fn(Timestamp) -> F,
    F: Future<Output = Result<Option<Timestamp>, Error>>,
{
    let mut changes = store.changes();
    let mut failing = false;
    loop {
        match work(Timestamp::now()).await {
            Ok(next) => {
                failing = false;
                tokio::select! {
                    () = due(next) => {}
                    () = changes.next(POLL_INTERVAL) => {}
                }
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "{complaint}");
                }
                failing = true;
                sleep(POLL_INTERVAL).await;
            }
        }
    }
}

async fn due(next: Option<Timestamp>) {
    match next {
        Some(next) => sleep(next.since(Timestamp::now())).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::{Instant, pause, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn it_runs_when_something_is_due_and_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        pause();
        let begun = Instant::now();
        let calls = Mutex::new(Vec::new());
        let work = |now: Timestamp| {
            let mut calls = calls.lock().unwrap();
            calls.push(begun.elapsed().as_secs_f64().round());
            let next = match calls.len() {
                1 => Ok(Some(now.after(3 * SECOND))),
                2 => Err(Error::unavailable("the store")),
                3 => Ok(Some(now.after(Duration::from_secs(60 * 60)))),
                _ => Ok(None),
            };
            std::future::ready(next)
        };
        let all = run(&store, "it fails", work);
        assert!(timeout(10 * SECOND, all).await.is_err());
        // Nothing is written, and what is due in an hour may be so sooner by a clock that is set.
        assert_eq!(*calls.lock().unwrap(), [0.0, 3.0, 4.0, 9.0]);
    }
}
