//! The end of a deleted flow: its messages that wait are discarded, and attempts under way end,
//! before the deletion is answered.

use std::time::Duration;

use kanat_message_log::{FlowEnd, SavedPlan};
use kanat_model::Result;
use kanat_model::id::FlowId;
use kanat_model::message::Failure;
use kanat_proto::plan::v1 as wire;
use prost::Message;
use tokio::time::{Instant, timeout};

use crate::app::App;
use crate::push::SetVersion;

/// Longest wait for nodes that hold messages of the flow. They break their attempts off when they
/// hear of the deletion.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Poll interval of the log: a write of another process may wake nobody here.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Marks the flow in the log as deleted by the change `version`, so that no node that has this
/// change runs the flow's messages from former plans. Where the change is not committed, the mark
/// says nothing: a later change is known by the version, and the nodes that have that run the flow.
pub(super) async fn mark(app: &App, id: &FlowId, version: SetVersion) -> Result<()> {
    let deletion = wire::SetVersion {
        epoch: version.epoch.into_string(),
        generation: version.generation,
    };
    let mark = SavedPlan::tombstone(id.clone(), deletion.encode_to_vec().into());
    Ok(app.log.save_plans(vec![mark]).await?)
}

/// Ends the messages of the flow, which is marked and out of service. Messages that a node holds
/// for longer than [`DRAIN_TIMEOUT`] are ended by the next node that claims them.
pub(super) async fn end_messages(app: &App, id: &FlowId) -> Result<()> {
    let failure = Failure::flow_deleted();
    let deadline = Instant::now() + DRAIN_TIMEOUT;
    let mut changed = app.log.changed();
    loop {
        // Before the look, so that no change after it goes unseen.
        changed.borrow_and_update();
        match app.log.end_flow(id, &failure).await? {
            FlowEnd::Complete => return Ok(()),
            FlowEnd::Partial => {}
            FlowEnd::Held if Instant::now() >= deadline => {
                tracing::warn!(flow.id = %id, "a node still holds messages of a deleted flow");
                return Ok(());
            }
            FlowEnd::Held => {
                // A log that is closing wakes nobody any more, and the next look says so.
                let _ = timeout(POLL_INTERVAL, changed.changed()).await;
            }
        }
    }
}
