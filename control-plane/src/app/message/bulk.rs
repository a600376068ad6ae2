//! Decisions about many messages at once: those that a filter finds.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt};
use kanat_message_log::{Filter, Message, NewMessage, Position, RetryVersion, Tenant, key};
use kanat_model::id::MessageId;
use kanat_model::message::{MAX_BULK, Status, check_bulk};
use kanat_model::page::Page;
use kanat_model::{Code, Error, Result, Timestamp};
use serde_json::json;

use super::{Query, append, deployed, replayed, retry_version};
use crate::app::audit::{self, Entity};
use crate::app::flow::PlanKeys;
use crate::app::{App, Call};

/// Ids that the audit log tells of one call.
const MAX_LISTED_IDS: usize = 100;

/// Unknown ids that an error names.
const MAX_NAMED_IDS: usize = 10;

/// Calls to the log that wait for its group commit at one time.
const AT_ONCE: usize = 64;

/// Tries every dead letter again that the query finds; gives their ids, oldest first.
pub async fn retry_all(call: &Call, query: Query) -> Result<Vec<MessageId>> {
    let mut filter = query.check(call.caller.tenant())?;
    match filter.statuses.as_slice() {
        [] => filter.statuses.push(Status::DeadLetter),
        [Status::DeadLetter] => {}
        [other, ..] => {
            let problem = format!(
                "{:?} cannot be retried: only messages with the status dead_letter can",
                other.as_str()
            );
            return Err(Error::field("status", problem));
        }
    }
    super::check_flow(call, &filter.flow_id).await?;
    check_ids(&call.app, &filter).await?;
    let found = find(&call.app, &filter).await?;
    if found.is_empty() {
        begun_with(call, &filter, &found).await?;
        return Ok(Vec::new());
    }
    let plan = deployed(call, &filter.flow_id).await?;
    let keys = PlanKeys::load(&call.app, &plan, &call.caller.environment_id).await?;
    begun_with(call, &filter, &found).await?;
    let plan = &plan;
    let keys = &keys;
    let versions = stream::iter(found).map(|message| async move {
        let version = retry_version(call, &message, plan, keys).await?;
        Ok((message.id, version))
    });
    let prepared: Vec<Result<(MessageId, RetryVersion)>> =
        versions.buffered(AT_ONCE).collect().await;
    let mut retried: Vec<_> = stream::iter(lines(prepared))
        .map(|line| retry_line(call, &filter.tenant, line))
        .buffer_unordered(AT_ONCE)
        .flat_map(stream::iter)
        .collect()
        .await;
    // What was retried is told before an error of another line.
    retried.sort_by_key(|(position, result)| (result.is_err(), *position));
    taken_up(stream::iter(retried).map(|(_, result)| result)).await
}

/// Messages to retry by their positions in what was found.
type Line = Vec<(usize, Result<(MessageId, RetryVersion)>)>;

/// Returns the messages of each ordering key in their order. A message without a key is alone.
fn lines(prepared: Vec<Result<(MessageId, RetryVersion)>>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut line_of: HashMap<String, usize> = HashMap::new();
    for (position, prepared) in prepared.into_iter().enumerate() {
        let key = prepared
            .as_ref()
            .ok()
            .and_then(|(_, version)| version.ordering_key.clone());
        let next = lines.len();
        let line = key.map_or(next, |key| *line_of.entry(key).or_insert(next));
        if line == next {
            lines.push(Line::new());
        }
        lines[line].push((position, prepared));
    }
    lines
}

/// Retries messages one after another: two retries at once have no order. Ends where the log fails.
async fn retry_line(call: &Call, tenant: &Tenant, line: Line) -> Vec<(usize, Result<MessageId>)> {
    let mut retried = Vec::with_capacity(line.len());
    for (position, prepared) in line {
        let result = match prepared {
            Ok((id, version)) => {
                let result = call.app.log.retry(tenant, &id, Some(version)).await;
                result.map(|()| id).map_err(Error::from)
            }
            Err(error) => Err(error),
        };
        let stops = result.as_ref().is_err_and(|error| !is_passed_over(error));
        retried.push((position, result));
        if stops {
            break;
        }
    }
    retried
}

/// Returns whether a message changed meanwhile, so that the call leaves it out.
fn is_passed_over(error: &Error) -> bool {
    matches!(error.code, Code::NotFound | Code::FailedPrecondition)
}

/// Replays every message that the query finds; gives the ids of the new ones, oldest first. A call
/// with an idempotency key replays each of them once, however often it is repeated.
pub async fn replay_all(call: &Call, query: Query) -> Result<Vec<MessageId>> {
    let filter = query.check(call.caller.tenant())?;
    let paused = super::check_flow(call, &filter.flow_id).await?;
    check_ids(&call.app, &filter).await?;
    let Some(mut filter) = paused.apply(filter.clone()) else {
        begun_with(call, &filter, &[]).await?;
        return Ok(Vec::new());
    };
    let begun = begun(call).await?;
    filter.until = filter.until.into_iter().chain(begun).min();
    let found = find(&call.app, &filter).await?;
    if found.is_empty() {
        begun_with(call, &filter, &found).await?;
        return Ok(Vec::new());
    }
    let plan = deployed(call, &filter.flow_id).await?;
    let keys = PlanKeys::load(&call.app, &plan, &call.caller.environment_id).await?;
    begun_with(call, &filter, &found).await?;
    let tenant = &filter.tenant;
    let plan = &plan;
    let keys = &keys;
    let contents = stream::iter(found).map(|message| async move {
        let content = call.app.log.content(tenant, &message.id).await?;
        content
            .map(|content| (content, message))
            .ok_or_else(|| Error::new(Code::NotFound, "the message is gone"))
    });
    let replays = contents.buffered(AT_ONCE).map(|read| async move {
        let (content, message) = read?;
        let name = call.caller.idempotency_id.as_deref();
        let dedupe = name.map(|call| key::management(&format!("{call}:{}", message.id)));
        let mut message = replayed(message, content, plan, keys);
        message.dedupe_keys.extend(dedupe);
        let message = NewMessage {
            received_at: begun.map_or(message.received_at, |at| at.max(message.received_at)),
            ..message
        };
        Ok(append(&call.app, message).await?.message_id)
    });
    taken_up(replays.buffered(AT_ONCE)).await
}

/// Refuses ids that no message of the flow has, and names them.
async fn check_ids(app: &App, filter: &Filter) -> Result<()> {
    if filter.ids.is_empty() {
        return Ok(());
    }
    let named = Filter {
        ids: filter.ids.clone(),
        ..Filter::flow(filter.tenant.clone(), filter.flow_id.clone())
    };
    let found = find(app, &named).await?;
    let is_unknown = |id: &&MessageId| found.iter().all(|message| message.id != **id);
    let unknown: BTreeSet<_> = filter.ids.iter().filter(is_unknown).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let shown = unknown.iter().take(MAX_NAMED_IDS);
    let shown: Vec<_> = shown.map(|id| format!("{:?}", id.as_str())).collect();
    let more = match unknown.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Error::field(
        "ids",
        format!(
            "no message of this flow has the id {}{more}",
            shown.join(", ")
        ),
    ))
}

/// Writes the entry of a call on the messages that were found.
async fn begun_with(call: &Call, filter: &Filter, found: &[Message]) -> Result<()> {
    let ids: Vec<_> = found
        .iter()
        .take(MAX_LISTED_IDS)
        .map(|found| &found.id)
        .collect();
    let after = json!({"flowId": filter.flow_id, "messages": found.len(), "messageIds": ids});
    let entity = Entity {
        environment_id: Some(call.caller.environment_id.clone()),
        ..Entity::default()
    };
    audit::record_before_work(call, entity, Some(after)).await
}

/// Returns when a call with an idempotency key began first. What it makes is received then or
/// later, by any clock, and what it finds before: its repeats do not find what it made.
async fn begun(call: &Call) -> Result<Option<Timestamp>> {
    if call.caller.idempotency_id.is_none() {
        return Ok(None);
    }
    let mut tx = call.write().await?;
    if let Some(noted) = call.caller.find_idempotent_result(&mut tx).await? {
        let millis = noted.parse().map_err(|_| Error::internal())?;
        return Ok(Some(Timestamp::from_millis(millis)));
    }
    // What came within this millisecond is found, too.
    let begun = Timestamp::now().after(Duration::from_millis(1));
    let noted = begun.as_millis().to_string();
    call.caller
        .record_idempotent_result(&mut tx, &noted)
        .await?;
    tx.commit().await?;
    Ok(Some(begun))
}

/// All messages that the filter finds, oldest first, with no payload kept.
async fn find(app: &App, filter: &Filter) -> Result<Vec<Message>> {
    let mut found = Vec::new();
    let mut position = Position::Page(Page::new(Some(Page::MAX_LIMIT), None));
    loop {
        let page = app.log.list(filter, position).await?;
        check_bulk(page.total)?;
        found.extend(page.messages.into_iter().map(without_payload));
        match page.next {
            // Messages that arrive meanwhile do not make it endless.
            Some(cursor) if (found.len() as u64) < MAX_BULK => {
                position = Position::After {
                    cursor,
                    limit: Page::MAX_LIMIT,
                };
            }
            Some(_) | None => break,
        }
    }
    found.reverse();
    Ok(found)
}

fn without_payload(message: Message) -> Message {
    Message {
        payload: bytes::Bytes::new(),
        output: None,
        ..message
    }
}

/// The ids that were taken up. What changed meanwhile is passed over; when the log fails on the
/// way, what was taken up before is still told.
async fn taken_up(taken: impl Stream<Item = Result<MessageId>>) -> Result<Vec<MessageId>> {
    let mut ids = Vec::new();
    let mut taken = std::pin::pin!(taken);
    while let Some(next) = taken.next().await {
        match next {
            Ok(id) => ids.push(id),
            Err(error) if is_passed_over(&error) => {}
            Err(error) if ids.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(
                    %error,
                    taken_up = ids.len(),
                    "a call on many messages was cut short",
                );
                break;
            }
        }
    }
    Ok(ids)
}
