//! Starting a flow by hand.

use kanat_message_log::key;
use kanat_model::flow::Status;
use kanat_model::id::FlowId;
use kanat_model::message::Trigger;
use kanat_model::{Error, Timestamp};
use kanat_proto::plan::v1::trigger::Kind;
use serde_json::json;

use super::deploy;
use super::start::{Start, StartedMessage, append, prepare};
use crate::app::audit::{self, Audited};
use crate::app::{Call, json};

const NULL: &str = "null";

/// Takes `payload`, JSON text, as a message. A paused flow holds it. A payload that is left out is
/// null, except where the trigger is a poll: its messages are records, and null is none.
pub async fn run(
    call: &Call,
    id: &FlowId,
    payload: Option<String>,
) -> Result<StartedMessage, Error> {
    json::check("payload", payload.as_deref().unwrap_or(NULL))?;
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    if flow.status == Status::Draft {
        return Err(Error::precondition(
            "a flow that is draft cannot be run: deploy it first",
        ));
    }
    let plan = deploy::deployed_plan(&call.app, &mut tx, &flow.environment_id, id).await?;
    drop(tx);
    let plan = plan.ok_or_else(|| Error::not_found("flow", id.as_str()))?;
    let polls = plan
        .trigger
        .as_ref()
        .is_some_and(|trigger| matches!(trigger.kind, Some(Kind::Poll(_))));
    if payload.is_none() && polls {
        let message = "is missing: give the record to run, for the trigger of this flow is poll";
        return Err(Error::field("payload", message));
    }
    let payload = payload.unwrap_or_else(|| NULL.to_owned());
    let at = Timestamp::now();
    let dedupe = call.caller.idempotency_id.as_deref().map(key::management);
    let start = Start {
        plan,
        payload,
        trigger: Trigger::Manual,
        at,
        dedupe,
        batch_id: None,
        traceparent: call.trace_context.clone(),
    };
    let message = prepare(&call.app, start).await?;
    let after = json!({ "messageId": message.id });
    audit::record_before_work(call, flow.entity(), Some(after)).await?;
    append(&call.app, message).await
}
