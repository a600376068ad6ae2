//! Notifications between the processes of one log, by `NOTIFY` and `LISTEN`. A slow timer makes up
//! for notifications that are lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kanat_database::Listener;
use kanat_model::id::BootId;
use tokio_util::sync::CancellationToken;

use super::options::Connections;
use super::pool::Pool;
use super::shared::{ChangeCounters, LogState, Notification};

/// Pause between two notifications of one process. Each takes a lock in the database that all
/// notifying processes share.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// Interval after which readers look into the log without a notification.
const FALLBACK_INTERVAL: Duration = Duration::from_secs(2);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Runs in a transaction of its own, which need not be on disk. In the transaction that writes, it
/// would make the commits of all processes wait for each other.
const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";

/// The notification channel of a log, as one process uses it.
#[derive(Clone)]
pub(super) struct NotifyChannel {
    channel: String,
    /// Marks the notifications of this process.
    process: String,
}

impl NotifyChannel {
    pub fn new(connecting: &Connections) -> Self {
        let channel = format!("{}_changed", connecting.schema);
        Self {
            channel,
            process: BootId::generate().into_string(),
        }
    }

    /// Notifies the other processes of changes that this one made, until the log is closed.
    pub async fn publish(
        self,
        pool: Pool,
        connecting: Connections,
        shared: Arc<LogState>,
        closing: CancellationToken,
    ) {
        let mut counters = shared.published();
        let mut published = ChangeCounters::default();
        loop {
            tokio::select! {
                changed = counters.changed() => if changed.is_err() { return },
                () = closing.cancelled() => return,
            }
            let now = *counters.borrow_and_update();
            let kind = if now.claimable == published.claimable {
                "events"
            } else {
                "claimable"
            };
            published = now;
            let payload = format!("{kind} {}", self.process);
            let patience = connecting.patience();
            let pool = pool.current();
            let notify = sqlx::query(NOTIFY)
                .bind(&self.channel)
                .bind(payload)
                .execute(&pool);
            tokio::select! {
                sent = patience.answered(notify) => if let Err(error) = sent {
                    tracing::debug!(
                        error = %error,
                        "other processes were not notified of changes of the message log",
                    );
                },
                () = closing.cancelled() => return,
            }
            tokio::time::sleep(NOTIFY_INTERVAL).await;
        }
    }

    /// Wakes the readers of this process by the notifications of others, until the log is closed.
    pub async fn subscribe(
        self,
        connecting: Connections,
        shared: Arc<LogState>,
        closing: CancellationToken,
    ) {
        while !closing.is_cancelled() {
            tokio::select! {
                Err(error) = self.listen(&connecting, &shared) => {
                    tracing::debug!(
                        error = %error,
                        "notifications of the message log cannot be received",
                    );
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
        connecting: &Connections,
        shared: &LogState,
    ) -> sqlx::Result<Infallible> {
        let mut listener = Listener::connect(&connecting.servers, &self.channel).await?;
        // Earlier notifications were missed.
        shared.notify(Notification::Claimable);
        loop {
            let payload = listener.next().await?;
            match payload.split_once(' ') {
                Some((_, process)) if process == self.process => {}
                Some(("events", _)) => shared.notify(Notification::Events),
                Some(_) | None => shared.notify(Notification::Claimable),
            }
        }
    }
}

/// Wakes the readers of this process from time to time, until the log is closed.
pub(super) async fn poll_fallback(shared: Arc<LogState>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(FALLBACK_INTERVAL) => shared.notify(Notification::Claimable),
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
    async fn a_process_is_notified_of_the_changes_of_another() {
        let database = Database::fresh();
        let connecting = Connections::new(database.url(), &Options::default()).unwrap();
        let pool = connecting.calls(3);
        let one = Arc::new(LogState::default());
        let other = Arc::new(LogState::default());
        let closing = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(NotifyChannel::new(&connecting).publish(
            pool.clone(),
            connecting.clone(),
            Arc::clone(&one),
            closing.clone(),
        ));
        tasks.spawn(NotifyChannel::new(&connecting).subscribe(
            connecting.clone(),
            Arc::clone(&other),
            closing.clone(),
        ));
        let mut changed = other.progress.changed();
        let mut claimable = other.progress.claimable();
        // It listens.
        claimable.changed().await.unwrap();
        changed.mark_unchanged();

        one.publish(Notification::Events);
        changed.changed().await.unwrap();
        assert!(!claimable.has_changed().unwrap());
        one.publish(Notification::Claimable);
        claimable.changed().await.unwrap();
        closing.cancel();
        tasks.close();
        tasks.wait().await;
        pool.close().await;
    }
}
