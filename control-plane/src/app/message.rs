//! Use-cases of messages: reading what became of them, and what a person decides about them.

mod bulk;
mod caller;
mod filter;
mod paused;
mod stream;

use kanat_message_log::{
    AppendOutcome, Filter, Message, MessagePage, NewMessage, Placement, Position, SavedPlan,
    Tenant, TraceRecord, key,
};
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{Status, Trigger};
use kanat_model::page::Page;
use kanat_model::{Error, Timestamp};
use kanat_plan_stream::{Kind, saved};
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::flow;

use crate::app::change::published;
use crate::app::{App, Caller, environment};
pub use bulk::{replay_all, retry_all};
use filter::ListScope;
pub use filter::{ListQuery, Query};
pub use paused::PausedFlows;
pub use stream::{Follow, StreamItem, follow};

/// Which part of a list a caller asked for.
#[derive(Debug, Clone)]
pub struct Part {
    pub page: Page,
    /// `nextCursor` of the page before; then the page's offset says nothing.
    pub cursor: Option<String>,
}

/// Messages, newest first: a flow's by the time they were received, those of all flows by their
/// places in the log.
pub async fn list(
    app: &App,
    caller: &Caller,
    query: ListQuery,
    part: &Part,
) -> Result<MessagePage, Error> {
    let listed = query.check(tenant(caller))?;
    let position = match part.cursor.as_deref() {
        None => Position::Page(part.page),
        Some(text) => Position::After {
            cursor: filter::cursor(text)?,
            limit: part.page.limit,
        },
    };
    match listed {
        ListScope::Flow(filter) => {
            let paused = check_flow(app, caller, &filter.flow_id).await?;
            let found = match paused.apply(filter) {
                Some(filter) => app.log.list(&filter, position).await?,
                None => MessagePage::default(),
            };
            Ok(shown(found, &paused))
        }
        ListScope::Environment(filter) => {
            let paused = match &filter.flow_id {
                Some(flow_id) => check_flow(app, caller, flow_id).await?,
                None => PausedFlows::of_environment(app, caller).await?,
            };
            let filter = paused.apply_to_environment(filter);
            Ok(shown(
                app.log.list_environment(&filter, position).await?,
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
async fn check_flow(app: &App, caller: &Caller, id: &FlowId) -> Result<PausedFlows, Error> {
    let mut tx = app.store.read().await?;
    let known = flow::get(&mut tx, &caller.environment_id, id).await?;
    drop(tx);
    if let Some(flow) = known {
        return Ok(PausedFlows::flow(&flow));
    }
    let one = Position::Page(Page::new(Some(1), None));
    let left = app
        .log
        .list(&Filter::flow(tenant(caller), id.clone()), one)
        .await?;
    match left.messages.is_empty() {
        true => Err(Error::not_found("flow", id.as_str())),
        false => Ok(PausedFlows::default()),
    }
}

/// One message, with everything that happened to it.
pub async fn get(
    app: &App,
    caller: &Caller,
    id: &MessageId,
) -> Result<(Message, Vec<TraceRecord>), Error> {
    let tenant = tenant(caller);
    let message = existing(app, &tenant, id).await?;
    let message = match message.status.while_paused() == message.status {
        true => message,
        false => paused(app, caller, &message.flow_id).await?.show(message),
    };
    let mut trace = app.log.trace(&tenant, id).await?;
    if let Trigger::Api | Trigger::Replay = message.trigger
        && let Some(arrival) = trace.iter_mut().find(|record| record.stage == "received")
    {
        arrival.request = caller::of(app, &tenant, id).await?;
    }
    Ok((message, trace))
}

/// Returns the flow if it is paused.
async fn paused(app: &App, caller: &Caller, id: &FlowId) -> Result<PausedFlows, Error> {
    let mut tx = app.store.read().await?;
    let flow = flow::get(&mut tx, &caller.environment_id, id).await?;
    Ok(flow.as_ref().map(PausedFlows::flow).unwrap_or_default())
}

/// Tries a dead letter again, under the flow's deployed version.
pub async fn retry(app: &App, caller: &Caller, id: &MessageId) -> Result<(), Error> {
    let tenant = tenant(caller);
    let message = existing(app, &tenant, id).await?;
    // One that failed again since has more attempts.
    let before = format!("retry of {id} after {} attempts", message.attempts);
    if !begins(app, caller, &before, message.status.retry()).await? {
        return Ok(());
    }
    let plan = deployed(app, caller, &message.flow_id).await?;
    Ok(app.log.retry(&tenant, id, Some(plan.version)).await?)
}

/// Sends what came in through the whole pipeline again, as a new message under the flow's deployed
/// version. Gives its id.
pub async fn replay(
    app: &App,
    caller: &Caller,
    id: &MessageId,
    traceparent: Option<String>,
) -> Result<MessageId, Error> {
    let tenant = tenant(caller);
    let message = existing(app, &tenant, id).await?;
    let plan = deployed(app, caller, &message.flow_id).await?;
    let content = app
        .log
        .content(&tenant, id)
        .await?
        .ok_or_else(|| missing(id))?;
    let dedupe = caller
        .call
        .as_deref()
        .map(key::management)
        .into_iter()
        .collect();
    append(
        app,
        NewMessage {
            traceparent,
            dedupe,
            ..replayed(message, content, &plan)
        },
    )
    .await
}

/// Says that a message needs no delivery; gives it as it then is.
pub async fn discard(
    app: &App,
    caller: &Caller,
    id: &MessageId,
) -> Result<(Message, Vec<TraceRecord>), Error> {
    let tenant = tenant(caller);
    let message = existing(app, &tenant, id).await?;
    if begins(
        app,
        caller,
        &format!("discard of {id}"),
        message.status.discard(),
    )
    .await?
    {
        app.log.discard(&tenant, id).await?;
    }
    get(app, caller, id).await
}

/// Notes that this call is about to change a message, which is as `before` tells and `may` be
/// changed. Returns whether it is to be: not where the call noted so before a crash and the message
/// is no longer as it was then.
async fn begins(
    app: &App,
    caller: &Caller,
    before: &str,
    may: Result<Status, Error>,
) -> Result<bool, Error> {
    if caller.call.is_none() {
        return may.map(|_| true);
    }
    let mut tx = app.store.begin().await?;
    match caller.made_before(&mut tx).await? {
        Some(noted) => Ok(noted == before && may.is_ok()),
        None => {
            may?;
            caller.note_made(&mut tx, before).await?;
            tx.commit().await?;
            Ok(true)
        }
    }
}

/// The flow's deployed plan, kept in the message log so that every node can run messages under it,
/// also one that the deploy has not reached yet.
async fn deployed(app: &App, caller: &Caller, flow_id: &FlowId) -> Result<FlowPlan, Error> {
    let mut tx = app.store.read().await?;
    let plan = published(
        &mut tx,
        &app.sealer,
        &caller.environment_id,
        Kind::Flow,
        flow_id.as_str(),
    )
    .await?;
    let exists = plan.is_some()
        || flow::get(&mut tx, &caller.environment_id, flow_id)
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
    if app.log.plan(flow_id, plan.version).await?.is_none() {
        let sealer = environment::sealer_of(app, &plan).await?;
        let body = saved::kept(&plan, sealer.as_ref());
        let saved = SavedPlan {
            flow_id: flow_id.clone(),
            version: plan.version,
            body,
        };
        app.log.save_plans(vec![saved]).await?;
    }
    Ok(plan)
}

/// The new message of a replay. It keeps the ordering key and has no key to be known as a repeat
/// by: it is meant as one.
fn replayed(message: Message, content: kanat_message_log::Content, plan: &FlowPlan) -> NewMessage {
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
        received_at: Timestamp::now(),
        ordering_key: message.ordering_key,
        dedupe: Vec::new(),
        replay_of: Some(message.id),
        batch_id: None,
        max_attempts: plan
            .retry
            .as_ref()
            .map_or(0, |retry| retry.count)
            .saturating_add(1),
        traceparent: None,
        place: if plan.paused {
            Placement::Held
        } else {
            Placement::Queued
        },
    }
}

async fn append(app: &App, message: NewMessage) -> Result<MessageId, Error> {
    let id = message.id.clone();
    Ok(match app.log.append(message).await? {
        AppendOutcome::Waiting | AppendOutcome::Awaited(_) | AppendOutcome::Leased(_) => id,
        AppendOutcome::Duplicate(former) => former,
    })
}

async fn existing(app: &App, tenant: &Tenant, id: &MessageId) -> Result<Message, Error> {
    app.log.get(tenant, id).await?.ok_or_else(|| missing(id))
}

fn missing(id: &MessageId) -> Error {
    Error::not_found("message", id.as_str())
}

fn tenant(caller: &Caller) -> Tenant {
    Tenant {
        account_id: caller.account_id.clone(),
        environment_id: caller.environment_id.clone(),
    }
}
