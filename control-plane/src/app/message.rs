//! Use-cases of messages: reading what became of them, and what a person decides about them.

mod bulk;
mod caller;
mod filter;
mod paused;
mod stream;

use kanat_message_log::{
    DedupeKey, Filter, Message, MessagePage, NewMessage, Position, RetryVersion, Tenant,
    TraceRecord, key,
};
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{Status, Trigger};
use kanat_model::page::Page;
use kanat_model::{Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::flow;
use serde_json::json;

use crate::app::audit::{self, Entity};
use crate::app::change::published;
use crate::app::flow::{MessageKeys, PlanKeys, append, max_attempts, placement, save_plan};
use crate::app::{App, Call};
pub use bulk::{replay_all, retry_all};
use filter::ListScope;
pub use filter::{ListQuery, Query};
pub use paused::PausedFlows;
pub use stream::{Follow, StreamItem, follow};

/// Which part of a list a caller asked for.
#[derive(Debug, Clone)]
pub struct Part {
    pub page: Page,
    /// `nextCursor` of the page before; then the page has no offset.
    pub cursor: Option<String>,
}

/// Messages, newest first: a flow's by the time they were received, those of all flows by their
/// places in the log.
pub async fn list(call: &Call, query: ListQuery, part: &Part) -> Result<MessagePage> {
    let listed = query.check(call.caller.tenant())?;
    let position = match part.cursor.as_deref() {
        None => Position::Page(part.page),
        Some(text) => Position::After {
            cursor: filter::cursor(text)?,
            limit: part.page.limit,
        },
    };
    match listed {
        ListScope::Flow(filter) => {
            let paused = check_flow(call, &filter.flow_id).await?;
            let found = match paused.apply(filter) {
                Some(filter) => call.app.log.list(&filter, position).await?,
                None => MessagePage::default(),
            };
            Ok(shown(found, &paused))
        }
        ListScope::Environment(filter) => {
            let paused = match &filter.flow_id {
                Some(flow_id) => check_flow(call, flow_id).await?,
                None => PausedFlows::of_environment(call).await?,
            };
            let filter = paused.apply_to_environment(filter);
            Ok(shown(
                call.app.log.list_environment(&filter, position).await?,
                &paused,
            ))
        }
    }
}

fn shown(page: MessagePage, paused: &PausedFlows) -> MessagePage {
    let messages = page
        .messages
        .into_iter()
        .map(|message| paused.show(message))
        .collect();
    MessagePage { messages, ..page }
}

/// Refuses a flow that neither the environment has nor the log knows: the messages of a deleted
/// flow are still there. Returns the flow if it is paused.
async fn check_flow(call: &Call, id: &FlowId) -> Result<PausedFlows> {
    let mut tx = call.read().await?;
    let known = flow::get(&mut tx, &call.caller.environment_id, id).await?;
    drop(tx);
    if let Some(flow) = known {
        return Ok(PausedFlows::flow(&flow));
    }
    let one = Position::Page(Page::new(Some(1), None));
    let left = call
        .app
        .log
        .list(&Filter::flow(call.caller.tenant(), id.clone()), one)
        .await?;
    match left.messages.is_empty() {
        true => Err(Error::not_found("flow", id.as_str())),
        false => Ok(PausedFlows::default()),
    }
}

/// A message, and everything that happened to it.
#[derive(Debug)]
pub struct Details {
    pub message: Message,
    pub trace: Vec<TraceRecord>,
    /// Reason why the message is not under way, where it waits for something else than a time.
    pub waits_for: Option<String>,
}

/// One message, with everything that happened to it.
pub async fn get(call: &Call, id: &MessageId) -> Result<Details> {
    let tenant = call.caller.tenant();
    let message = existing(&call.app, &tenant, id).await?;
    let paused = match Status::WAITING.contains(&message.status) {
        true => paused(call, &message.flow_id).await?,
        false => PausedFlows::default(),
    };
    let message = paused.show(message);
    let waits_for = match message.status {
        Status::Held => paused
            .contains(&message.flow_id)
            .then(|| "its flow is paused".to_owned()),
        Status::Received if message.ordering_key.is_some() => {
            let head = call.app.log.head_of_key(&tenant, id).await?;
            head.map(|head| format!("{head} comes first, by the same ordering key"))
        }
        Status::Received
        | Status::Processing
        | Status::Retrying
        | Status::Delivered
        | Status::Filtered
        | Status::DeadLetter
        | Status::Discarded => None,
    };
    let mut trace = call.app.log.trace(&tenant, id).await?;
    if let Trigger::Api | Trigger::Replay = message.trigger
        && let Some(arrival) = trace.iter_mut().find(|record| record.stage == "received")
    {
        arrival.request = caller::of(&call.app, &tenant, id).await?;
    }
    Ok(Details {
        message,
        trace,
        waits_for,
    })
}

/// Returns the flow if it is paused.
async fn paused(call: &Call, id: &FlowId) -> Result<PausedFlows> {
    let mut tx = call.read().await?;
    let flow = flow::get(&mut tx, &call.caller.environment_id, id).await?;
    Ok(flow.as_ref().map(PausedFlows::flow).unwrap_or_default())
}

/// Tries a dead letter again, under the flow's deployed version.
pub async fn retry(call: &Call, id: &MessageId) -> Result<()> {
    let tenant = call.caller.tenant();
    let message = existing(&call.app, &tenant, id).await?;
    // One that failed again since has more attempts.
    let before = format!("retry of {id} after {} attempts", message.attempts);
    let entity = Entity::of(&call.caller.environment_id, id);
    let may = message.status.retry();
    // Nothing is told of a call that can do nothing.
    let version = match &may {
        Ok(_) => {
            let plan = deployed(call, &message.flow_id).await?;
            let keys = PlanKeys::load(&call.app, &plan, &call.caller.environment_id).await?;
            Some(retry_version(call, &message, &plan, &keys).await?)
        }
        Err(_) => None,
    };
    if !begins(call, &before, may, entity).await? {
        return Ok(());
    }
    let version = version.ok_or_else(Error::internal)?;
    Ok(call.app.log.retry(&tenant, id, Some(version)).await?)
}

/// Returns the deployed version with the keys that it gives a message.
async fn retry_version(
    call: &Call,
    message: &Message,
    plan: &FlowPlan,
    keys: &PlanKeys,
) -> Result<RetryVersion> {
    let keys = match keys.has_any() {
        true => {
            let tenant = call.caller.tenant();
            let content = call.app.log.content(&tenant, &message.id).await?;
            let content = content.ok_or_else(|| missing(&message.id))?;
            keys.of_content(&content, message.received_at)
        }
        false => MessageKeys::default(),
    };
    Ok(RetryVersion {
        flow_version: plan.version,
        ordering_key: keys.ordering,
        dedupe_key: keys.idempotency,
    })
}

/// Sends what came in through the whole pipeline again, as a new message under the flow's deployed
/// version. Gives its id.
pub async fn replay(call: &Call, id: &MessageId) -> Result<MessageId> {
    let tenant = call.caller.tenant();
    let message = existing(&call.app, &tenant, id).await?;
    let plan = deployed(call, &message.flow_id).await?;
    let content = call
        .app
        .log
        .content(&tenant, id)
        .await?
        .ok_or_else(|| missing(id))?;
    let keys = PlanKeys::load(&call.app, &plan, &call.caller.environment_id).await?;
    let mut replay = NewMessage {
        traceparent: call.trace_context.clone(),
        ..replayed(message, content, &plan, &keys)
    };
    let name = call.caller.idempotency_id.as_deref();
    replay.dedupe_keys.extend(name.map(key::management));
    let entity = Entity::of(&call.caller.environment_id, id);
    let after = json!({ "messageId": replay.id, "replayOf": id });
    audit::record_before_work(call, entity, Some(after)).await?;
    Ok(append(&call.app, replay).await?.message_id)
}

/// Says that a message needs no delivery; gives it as it then is.
pub async fn discard(call: &Call, id: &MessageId) -> Result<Details> {
    let tenant = call.caller.tenant();
    let message = existing(&call.app, &tenant, id).await?;
    let entity = Entity::of(&call.caller.environment_id, id);
    let before = format!("discard of {id}");
    if begins(call, &before, message.status.discard(), entity).await? {
        call.app.log.discard(&tenant, id).await?;
    }
    get(call, id).await
}

/// Notes that this call is about to change a message, which is as `before` tells and `may` be
/// changed. Returns whether it is to be: not where the call noted so before a crash and the message
/// is no longer as it was then.
async fn begins(call: &Call, before: &str, may: Result<Status>, entity: Entity) -> Result<bool> {
    if call.caller.idempotency_id.is_none() {
        may?;
        audit::record_before_work(call, entity, None).await?;
        return Ok(true);
    }
    let mut tx = call.write().await?;
    match call.caller.find_idempotent_result(&mut tx).await? {
        Some(noted) => Ok(noted == before && may.is_ok()),
        None => {
            may?;
            call.caller
                .record_idempotent_result(&mut tx, before)
                .await?;
            audit::record(call, &mut tx, entity, None, None).await?;
            tx.commit().await?;
            Ok(true)
        }
    }
}

/// The flow's deployed plan, kept in the message log so that every node can run messages under it,
/// also one that the deploy has not reached yet.
async fn deployed(call: &Call, flow_id: &FlowId) -> Result<FlowPlan> {
    let mut tx = call.read().await?;
    let plan = published(
        &mut tx,
        &call.app.sealer,
        &call.caller.environment_id,
        Kind::Flow,
        flow_id.as_str(),
    )
    .await?;
    let exists = plan.is_some()
        || flow::get(&mut tx, &call.caller.environment_id, flow_id)
            .await?
            .is_some();
    drop(tx);
    let plan: FlowPlan = plan.ok_or_else(|| {
        let state = if exists { "not deployed" } else { "deleted" };
        Error::precondition(format!(
            "flow {:?} is {state}, so that nothing can run its messages",
            flow_id.as_str()
        ))
    })?;
    save_plan(&call.app, &plan).await?;
    Ok(plan)
}

/// The new message of a replay, with the keys of its version. It is no duplicate of a message that
/// holds its idempotency key: it is meant as a repeat.
fn replayed(
    message: Message,
    content: kanat_message_log::Content,
    plan: &FlowPlan,
    keys: &PlanKeys,
) -> NewMessage {
    let received_at = Timestamp::now();
    let keys = keys.of_content(&content, received_at);
    let dedupe = keys.idempotency.map(DedupeKey::accepting_repeats);
    NewMessage {
        id: MessageId::generate(),
        account_id: message.account_id,
        environment_id: message.environment_id,
        flow_id: message.flow_id,
        flow_name: plan.flow_name.clone(),
        flow_version: plan.version,
        trigger: Trigger::Replay,
        raw_body: content.raw_body,
        payload: content.payload,
        request: content.request,
        received_at,
        ordering_key: keys.ordering,
        dedupe_keys: dedupe.into_iter().collect(),
        replay_of: Some(message.id),
        batch_id: None,
        max_attempts: max_attempts(plan),
        traceparent: None,
        place: placement(plan),
    }
}

async fn existing(app: &App, tenant: &Tenant, id: &MessageId) -> Result<Message> {
    app.log.get(tenant, id).await?.ok_or_else(|| missing(id))
}

fn missing(id: &MessageId) -> Error {
    Error::not_found("message", id.as_str())
}
