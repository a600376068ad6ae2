//! What processes on one log tell each other: that there is something new. A slow look at the clock
//! stands in for what gets lost on the way.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kanat_database::Listener;
use kanat_model::id::BootId;
use tokio_util::sync::CancellationToken;

use super::options::Connecting;
use super::pool::Pool;
use super::shared::{Change, News, Shared};

/// Between two notifications of one process: each takes a lock in the database that all notifying
/// processes share.
const PAUSE: Duration = Duration::from_millis(20);
/// Everybody looks again after so long, whatever was or was not heard.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// In a transaction of its own, which need not be on disk: in the transaction that writes, it would
/// make the commits of all processes wait for each other.
const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";

/// One process's end of the line.
#[derive(Clone)]
pub(super) struct Line {
    channel: String,
    /// Says which notifications are our own.
    process: String,
}

impl Line {
    pub fn new(connecting: &Connecting) -> Self {
        let channel = format!("{}_changed", connecting.schema);
        Self {
            channel,
            process: BootId::generate().into_string(),
        }
    }

    /// Tells the other processes what happened here, until the log is closed.
    pub async fn tell(
        self,
        pool: Pool,
        connecting: Connecting,
        shared: Arc<Shared>,
        closing: CancellationToken,
    ) {
        let mut news = shared.news();
        let mut told = News::default();
        loop {
            tokio::select! {
                changed = news.changed() => if changed.is_err() { return },
                () = closing.cancelled() => return,
            }
            let now = *news.borrow_and_update();
            let what = if now.claimable == told.claimable {
                "events"
            } else {
                "claimable"
            };
            told = now;
            let payload = format!("{what} {}", self.process);
            let patience = connecting.patience();
            let pool = pool.current();
            let telling = sqlx::query(NOTIFY)
                .bind(&self.channel)
                .bind(payload)
                .execute(&pool);
            tokio::select! {
                told = patience.answered(telling) => if let Err(error) = told {
                    tracing::debug!(error = %error, "other processes were not told of news in the \
                                                     message log");
                },
                () = closing.cancelled() => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Hears what the other processes tell, until the log is closed.
    pub async fn hear(
        self,
        connecting: Connecting,
        shared: Arc<Shared>,
        closing: CancellationToken,
    ) {
        while !closing.is_cancelled() {
            tokio::select! {
                Err(error) = self.listen(&connecting, &shared) => {
                    tracing::debug!(error = %error, "news of the message log cannot be heard for \
                                                     now");
                }
                () = closing.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(RECONNECT_PAUSE) => {}
                () = closing.cancelled() => return,
            }
        }
    }

    async fn listen(
        &self,
        connecting: &Connecting,
        shared: &Shared,
    ) -> Result<Infallible, sqlx::Error> {
        let mut listener = Listener::connect(&connecting.servers, &self.channel).await?;
        // What was told before is not heard.
        shared.heard(Change::Claimable);
        loop {
            let told = listener.next().await?;
            match told.split_once(' ') {
                Some((_, process)) if process == self.process => {}
                Some(("events", _)) => shared.heard(Change::Events),
                Some(_) | None => shared.heard(Change::Claimable),
            }
        }
    }
}

/// Looks again from time to time, until the log is closed.
pub(super) async fn look_again(shared: Arc<Shared>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => shared.heard(Change::Claimable),
            () = closing.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use kanat_testing_postgres::Database;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::postgres::Options;

    #[tokio::test]
    async fn a_process_hears_what_another_tells() {
        let database = Database::fresh();
        let connecting = Connecting::new(database.url(), &Options::default()).unwrap();
        let pool = connecting.calls(3);
        let one = Arc::new(Shared::new());
        let other = Arc::new(Shared::new());
        let closing = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(Line::new(&connecting).tell(
            pool.clone(),
            connecting.clone(),
            Arc::clone(&one),
            closing.clone(),
        ));
        tasks.spawn(Line::new(&connecting).hear(
            connecting.clone(),
            Arc::clone(&other),
            closing.clone(),
        ));
        let mut changed = other.changed();
        let mut claimable = other.claimable();
        // It listens.
        claimable.changed().await.unwrap();
        changed.mark_unchanged();

        one.happened(Change::Events);
        changed.changed().await.unwrap();
        assert!(!claimable.has_changed().unwrap());
        one.happened(Change::Claimable);
        claimable.changed().await.unwrap();
        closing.cancel();
        tasks.close();
        tasks.wait().await;
        pool.close().await;
    }
}
