//! Starting a flow without a sender: a person or a clock gives the payload, and any node runs it.

use bytes::Bytes;
use kanat_message_log::{AppendOutcome, DedupeKey, NewMessage, Placement, SavedPlan};
use kanat_model::id::{EnvironmentId, FlowId, MessageId};
use kanat_model::message::Trigger;
use kanat_model::{Result, Timestamp};
use kanat_plan_stream::saved;
use kanat_proto::plan::v1::FlowPlan;

use super::keys::PlanKeys;
use crate::app::{App, environment};

/// A message that is to be.
#[derive(Debug)]
pub struct Start {
    /// The deployed plan; a paused one holds the message.
    pub plan: FlowPlan,
    /// JSON text.
    pub payload: String,
    pub trigger: Trigger,
    pub at: Timestamp,
    /// By what it is known, beside the flow's own key.
    pub dedupe: Option<DedupeKey>,
    /// The batch job that it is a record of.
    pub batch_id: Option<String>,
    pub traceparent: Option<String>,
}

/// A message that was taken up, or was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedMessage {
    pub message_id: MessageId,
    pub duplicate: bool,
}

/// Takes the payload as a message of the plan's version.
pub async fn start(app: &App, start: Start) -> Result<StartedMessage> {
    append(app, prepare(app, start).await?).await
}

/// Makes the message; nothing has begun before it is in the log.
pub async fn prepare(app: &App, start: Start) -> Result<NewMessage> {
    let Start {
        plan,
        payload,
        trigger,
        at,
        dedupe,
        batch_id,
        traceparent,
    } = start;
    save_plan(app, &plan).await?;
    let request = request_json(at);
    let environment_id = EnvironmentId::from(plan.environment_id.as_str());
    let keys = PlanKeys::load(app, &plan, &environment_id).await?;
    let keys = keys.of_payload(payload.as_bytes(), request.as_bytes(), at);
    let max_attempts = max_attempts(&plan);
    let place = placement(&plan);
    Ok(NewMessage {
        id: MessageId::generate(),
        account_id: plan.account_id.into(),
        environment_id,
        flow_id: plan.flow_id.into(),
        flow_name: plan.flow_name,
        flow_version: plan.version,
        trigger,
        raw_body: Bytes::from(payload),
        payload: None,
        request: Bytes::from(request),
        received_at: at,
        ordering_key: keys.ordering,
        dedupe_keys: dedupe.into_iter().chain(keys.idempotency).collect(),
        replay_of: None,
        batch_id,
        max_attempts,
        traceparent,
        place,
    })
}

/// Returns how often a message of this plan is tried at most.
pub fn max_attempts(plan: &FlowPlan) -> u32 {
    let retry = plan.retry.as_ref();
    retry.map_or(0, |retry| retry.count).saturating_add(1)
}

/// Returns where a new message of this plan waits: a paused flow holds it.
pub fn placement(plan: &FlowPlan) -> Placement {
    if plan.paused {
        Placement::Held
    } else {
        Placement::Queued
    }
}

/// Puts a message into the log.
pub async fn append(app: &App, message: NewMessage) -> Result<StartedMessage> {
    let message_id = message.id.clone();
    match app.log.append(message).await? {
        AppendOutcome::Duplicate(first) => Ok(StartedMessage {
            message_id: first,
            duplicate: true,
        }),
        AppendOutcome::Leased(_) | AppendOutcome::Waiting | AppendOutcome::Awaited(_) => {
            Ok(StartedMessage {
                message_id,
                duplicate: false,
            })
        }
    }
}

/// Returns the `trigger` document of a payload that came by the API.
pub fn request_json(received_at: Timestamp) -> String {
    format!(
        concat!(
            r#"{{"headers":{{}},"query":{{}},"method":"POST","path_params":{{}},"#,
            r#""received_at":"{}"}}"#
        ),
        received_at
    )
}

/// Keeps a deployed plan in the message log: every node can run messages under it, also when the
/// deploy has not reached it yet, or the next one comes first.
pub async fn save_plan(app: &App, plan: &FlowPlan) -> Result<()> {
    let flow_id = FlowId::from(plan.flow_id.as_str());
    if app.log.plan(&flow_id, plan.version).await?.is_some() {
        return Ok(());
    }
    let sealer = environment::sealer_of(app, plan).await?;
    let saved = SavedPlan {
        flow_id,
        version: plan.version,
        body: saved::encode(plan, sealer.as_ref()),
    };
    Ok(app.log.save_plans(vec![saved]).await?)
}
