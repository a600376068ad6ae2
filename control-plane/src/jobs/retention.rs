//! Drops finished messages that are older than they are kept for.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::MessageLog;
use kanat_model::Timestamp;
use kanat_store::Store;

use super::hourly;

/// Runs for ever. A failure waits for the next hour.
pub async fn run(store: Store, log: Arc<dyn MessageLog>, keep: Duration) {
    hourly::run(&store, "retention", || drop_old(log.as_ref(), keep)).await;
}

async fn drop_old(log: &dyn MessageLog, keep: Duration) {
    match log.retain(Timestamp::now().before(keep)).await {
        Ok(0) => {}
        Ok(messages) => tracing::info!(messages, "old messages are dropped"),
        Err(error) => tracing::warn!(%error, "old messages cannot be dropped"),
    }
}
