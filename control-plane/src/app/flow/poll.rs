//! How the polls of flows stand, which is the nodes' to write, and what is forgotten of them.

use kanat_message_log::PollStanding;
use kanat_model::Error;
use kanat_store::flow::{self, Flow};

use crate::app::App;

/// How the poll of a flow stands; `None` for a flow that does not poll, was not polled yet, or while the log is silent.
pub async fn poll(app: &App, flow: &Flow) -> Option<PollStanding> {
    if flow.trigger_kind != "poll" {
        return None;
    }
    app.log.poll(&flow.id).await.unwrap_or_else(|error| {
        tracing::warn!(flow.id = %flow.id, %error, "cannot see how the poll of a flow stands");
        None
    })
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
