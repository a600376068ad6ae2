//! Work that is seen to when it comes due: every control plane looks when the next is due, and when
//! what it saw may be true no more.

use std::time::Duration;

use kanat_model::{Error, Timestamp};
use kanat_store::Store;
use tokio::time::sleep;

/// How often it is seen to whether something else is due by now, where another control plane may
/// have changed it.
const LOOK: Duration = Duration::from_secs(1);

/// Calls `see_to`, which does what is due and says when the next is, for ever. A store that fails
/// is asked again at the next look, and `complaint` is made once.
pub async fn run<S, F>(store: &Store, complaint: &str, see_to: S)
where
    S: Fn(Timestamp) -> F,
    F: Future<Output = Result<Option<Timestamp>, Error>>,
{
    let mut changes = store.changes();
    let mut failing = false;
    loop {
        match see_to(Timestamp::now()).await {
            Ok(next) => {
                failing = false;
                tokio::select! {
                    () = due(next) => {}
                    () = changes.next(LOOK) => {}
                }
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "{complaint}");
                }
                failing = true;
                sleep(LOOK).await;
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
    async fn it_looks_when_something_is_due_and_again_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        pause();
        let begun = Instant::now();
        let looks = Mutex::new(Vec::new());
        let see_to = |now: Timestamp| {
            let mut looks = looks.lock().unwrap();
            looks.push(begun.elapsed().as_secs_f64().round());
            let next = match looks.len() {
                1 => Ok(Some(now.after(3 * SECOND))),
                2 => Err(Error::unavailable("the store")),
                3 => Ok(Some(now.after(Duration::from_secs(60 * 60)))),
                _ => Ok(None),
            };
            std::future::ready(next)
        };
        let all = run(&store, "it fails", see_to);
        assert!(timeout(10 * SECOND, all).await.is_err());
        // Nothing is written, and what is due in an hour may be so sooner by a clock that is set.
        assert_eq!(*looks.lock().unwrap(), [0.0, 3.0, 4.0, 9.0]);
    }
}
