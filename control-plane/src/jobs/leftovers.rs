//! Drops what nobody needs any more: messages and batch jobs that finished long ago, records of
//! which no job came to be, what the polls of deleted flows remember, keys on nodes that refuse
//! them, and nodes that did not come back: those that took the place of others would else be listed
//! beside them for ever.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_store::{Store, node};

use super::periodic;
use crate::app::audit::chain;
use crate::app::{App, batch_job, consumer_key, flow};
use crate::push::nodes::LISTED;

const PERIOD: Duration = Duration::from_secs(60 * 60);

/// How long finished things are kept; for ever when there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    pub messages: Option<Duration>,
    pub batch_jobs: Option<Duration>,
    pub audit_log: Option<Duration>,
}

/// Runs for ever. A failure waits for the next hour.
pub async fn run(app: Arc<App>, retention: Retention) {
    periodic::run(&app.store, "leftovers", PERIOD, || {
        drop_all(&app, retention)
    })
    .await;
}

async fn drop_all(app: &App, retention: Retention) {
    let now = Timestamp::now();
    if let Some(keep) = retention.batch_jobs {
        log(
            "finished batch jobs",
            batch_job::drop_finished(&app.store, now.before(keep)).await,
        );
    }
    log(
        "uploads of batch jobs",
        batch_job::drop_silent(&app.store, now).await,
    );
    log(
        "polls of deleted flows",
        flow::forget_deleted_polls(app).await,
    );
    log(
        "keys whose grace is over",
        consumer_key::drop_expired(app).await,
    );
    log(
        "nodes that were not seen for a week",
        drop_unseen(&app.store, now.before(LISTED)).await,
    );
    if let Some(keep) = retention.audit_log {
        log(
            "old entries of the audit log",
            chain::retain(app, now.before(keep)).await,
        );
    }
    if let Err(error) = chain::log_heads(app).await {
        tracing::warn!(%error, "the head of the audit log cannot be read");
    }
    if let Some(keep) = retention.messages {
        log("old messages", app.log.retain(now.before(keep)).await);
    }
}

fn log<N: Display + PartialEq + Default>(what: &str, dropped: Result<N, impl Display>) {
    match dropped {
        Ok(count) if count == N::default() => {}
        Ok(count) => tracing::info!(%count, "{what} are dropped"),
        Err(error) => tracing::warn!(%error, "{what} cannot be dropped"),
    }
}

async fn drop_unseen(store: &Store, before: Timestamp) -> Result<u64, kanat_store::Error> {
    let mut tx = store.begin().await?;
    let nodes = node::delete_unseen(&mut tx, before).await?;
    tx.commit().await?;
    Ok(nodes)
}

#[cfg(test)]
mod tests;
