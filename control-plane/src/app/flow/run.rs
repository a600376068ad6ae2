//! Starting a flow by hand: the payload becomes a message of the deployed version, for any node to run.

use bytes::Bytes;
use kanat_engine::{Input, Program};
use kanat_message_log::{Appended, NewMessage, Place, SavedPlan, key};
use kanat_model::flow::Status;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Trigger;
use kanat_model::{Error, Timestamp};
use kanat_plan_stream::{Kind, saved};
use kanat_proto::plan::v1::FlowPlan;

use super::names::EnvironmentNames;
use super::samples::Samples;
use super::{existing, test};
use crate::app::{App, Caller, change};

/// A message that was taken up, or was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub message_id: MessageId,
    pub duplicate: bool,
}

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
    let place = match flow.status {
        Status::Draft => return Err(Error::precondition("a flow that is draft cannot be run: deploy it first")),
        Status::Active => Place::Queued,
        Status::Paused => Place::Held,
    };
    let plan: Option<FlowPlan> =
        change::published(&mut tx, &app.sealer, &caller.environment_id, Kind::Flow, id.as_str()).await?;
    let plan = plan.ok_or_else(|| Error::not_found("flow", id.as_str()))?;
    let names = EnvironmentNames::load(&mut tx, &caller.environment_id).await?;
    let samples = Samples::load(app, &mut tx, &caller.environment_id, &plan, &names).await?;
    drop(tx);
    save_plan(app, id, &plan).await?;

    let received_at = Timestamp::now();
    let request = request_json(received_at);
    let max_attempts = plan.retry.as_ref().map_or(0, |retry| retry.count).saturating_add(1);
    let flow_version = plan.version;
    let program = Program::compile(plan).map_err(|error| Error::precondition(error.to_string()))?;
    let input = Input { payload: payload.as_bytes(), trigger: request.as_bytes(), steps: b"{}", now: received_at };
    let keys = program.keys(&input, &samples);
    let message_id = MessageId::generate();
    let message = NewMessage {
        id: message_id.clone(),
        account_id: caller.account_id.clone(),
        environment_id: caller.environment_id.clone(),
        flow_id: id.clone(),
        flow_name: flow.name,
        flow_version,
        trigger: Trigger::Manual,
        raw_body: Bytes::from(payload),
        payload: None,
        request: Bytes::from(request),
        received_at,
        ordering_key: keys.ordering.map(key::ordering),
        dedupe: keys.idempotency.map(key::idempotency).into_iter().collect(),
        replay_of: None,
        batch_id: None,
        max_attempts,
        traceparent,
        place,
    };
    match app.log.append(message).await? {
        Appended::Duplicate(first) => Ok(Started { message_id: first, duplicate: true }),
        Appended::Leased(_) | Appended::Waiting => Ok(Started { message_id, duplicate: false }),
    }
}

/// What came with a payload that came by the API.
pub fn request_json(received_at: Timestamp) -> String {
    format!(r#"{{"headers":{{}},"query":{{}},"method":"POST","path_params":{{}},"received_at":"{received_at}"}}"#)
}

/// The version must stay runnable, also when no node has taken it up yet and the next deploy comes first.
async fn save_plan(app: &App, id: &FlowId, plan: &FlowPlan) -> Result<(), Error> {
    if app.log.plan(id, plan.version).await?.is_some() {
        return Ok(());
    }
    let saved = SavedPlan { flow_id: id.clone(), version: plan.version, body: saved::body(plan) };
    Ok(app.log.save_plans(vec![saved]).await?)
}
