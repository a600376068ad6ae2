//! How the polls of flows stand, which is the nodes' to write, and what is forgotten of them.

use std::collections::HashMap;

use kanat_message_log::PollStanding;
use kanat_model::Error;
use kanat_model::id::FlowId;
use kanat_store::flow::{self, Flow};

use crate::app::App;

/// How the polls of flows stand; without those that do not poll or were not polled yet, and empty
/// while the log is silent.
pub async fn polls(app: &App, flows: &[&Flow]) -> HashMap<FlowId, PollStanding> {
    let polled: Vec<FlowId> = flows
        .iter()
        .filter(|flow| flow.trigger_kind == "poll")
        .map(|flow| flow.id.clone())
        .collect();
    if polled.is_empty() {
        return HashMap::new();
    }
    let found = app.log.polls(&polled).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot see how the polls of flows stand");
        Vec::new()
    });
    found.into_iter().collect()
}

/// Forgets what the polls of flows remember that are deleted. Says of how many.
pub async fn forget_deleted_polls(app: &App) -> Result<usize, Error> {
    let mut forgotten = 0;
    for id in app.log.polled_flows().await? {
        let exists = flow::exists(&mut *app.store.read().await?, &id).await?;
        if exists {
            continue;
        }
        while app.log.forget_poll(&id).await? {}
        forgotten += 1;
    }
    Ok(forgotten)
}
