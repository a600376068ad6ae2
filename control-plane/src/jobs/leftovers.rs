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
use crate::app::{App, batch_job, consumer_key, environment, flow};
use crate::push::nodes::DISCONNECTED_RETENTION;

const PERIOD: Duration = Duration::from_secs(60 * 60);

/// Runs for ever. A failure waits for the next hour.
pub async fn run(app: Arc<App>) {
    periodic::run(&app.store, "leftovers", PERIOD, || drop_all(&app)).await;
}

async fn drop_all(app: &App) {
    let now = Timestamp::now();
    let retention = app.retention;
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
        drop_unseen(&app.store, now.before(DISCONNECTED_RETENTION)).await,
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
    let of_environments = environment::drop_old_messages(app, now).await;
    let has_dropped = !matches!(of_environments, Ok(0));
    log("old messages of environments", of_environments);
    // Without a time of its own the service drops no message, and gives back the room of dropped
    // ones.
    let room = has_dropped.then_some(Timestamp::from_millis(0));
    let older_than = retention.messages.map(|keep| now.before(keep)).or(room);
    if let Some(older_than) = older_than {
        log("old messages", app.log.retain(older_than).await);
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
