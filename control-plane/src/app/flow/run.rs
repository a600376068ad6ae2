//! Starting a flow by hand.

use kanat_model::flow::Status;
use kanat_model::id::FlowId;
use kanat_model::message::Trigger;
use kanat_model::{Error, Timestamp};

use super::start::{Start, Started, start};
use super::{deploy, existing, test};
use crate::app::{App, Caller};

/// Takes `payload`, JSON text, as a message. A paused flow holds it.
pub async fn run(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    payload: String,
    traceparent: Option<String>,
) -> Result<Started, Error> {
    test::check_json("payload", &payload)?;
    let mut tx = app.store.read().await?;
    let flow = existing(&mut tx, caller, id).await?;
    if flow.status == Status::Draft {
        return Err(Error::precondition("a flow that is draft cannot be run: deploy it first"));
    }
    let plan = deploy::deployed_plan(app, &mut tx, &flow.environment_id, id).await?;
    drop(tx);
    let plan = plan.ok_or_else(|| Error::not_found("flow", id.as_str()))?;
    let at = Timestamp::now();
    start(app, Start { plan, payload, trigger: Trigger::Manual, at, dedupe: None, batch_id: None, traceparent }).await
}
