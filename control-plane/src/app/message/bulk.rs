//! Decisions about many messages at once: those that a filter finds.

use futures::stream::{self, Stream, StreamExt};
use kanat_message_log::{Filter, Message, Position};
use kanat_model::id::MessageId;
use kanat_model::message::Status;
use kanat_model::page::Page;
use kanat_model::{Code, Error};

use super::{Query, append, deployed, replayed, tenant};
use crate::app::{App, Caller};

/// Messages that one call may take up.
const AT_MOST: u64 = 10_000;

/// Calls to the log that wait for its group commit at one time.
const AT_ONCE: usize = 64;

/// Tries every dead letter again that the query finds; gives their ids, oldest first.
pub async fn retry_all(app: &App, caller: &Caller, query: Query) -> Result<Vec<MessageId>, Error> {
    let mut filter = query.check(tenant(caller))?;
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
    super::check_flow(app, caller, &filter.flow_id).await?;
    let found = find(app, &filter).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let version = deployed(app, caller, &filter.flow_id).await?.version;
    let tenant = &filter.tenant;
    let retries = stream::iter(found).map(|message| async move {
        let retried = app
            .log
            .retry(tenant, &message.id, Some(version))
            .await
            .map_err(Error::from);
        retried.map(|()| message.id)
    });
    taken_up(retries.buffered(AT_ONCE)).await
}

/// Replays every message that the query finds; gives the ids of the new ones, oldest first.
pub async fn replay_all(app: &App, caller: &Caller, query: Query) -> Result<Vec<MessageId>, Error> {
    let filter = query.check(tenant(caller))?;
    let paused = super::check_flow(app, caller, &filter.flow_id).await?;
    let Some(filter) = paused.apply(filter) else {
        return Ok(Vec::new());
    };
    let found = find(app, &filter).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let plan = deployed(app, caller, &filter.flow_id).await?;
    let tenant = &filter.tenant;
    let plan = &plan;
    let contents = stream::iter(found).map(|message| async move {
        let content = app.log.content(tenant, &message.id).await?;
        content
            .map(|content| (content, message))
            .ok_or_else(|| Error::new(Code::NotFound, "the message is gone"))
    });
    let replays = contents.buffered(AT_ONCE).map(|read| async move {
        let (content, message) = read?;
        append(app, replayed(message, content, plan)).await
    });
    taken_up(replays.buffered(AT_ONCE)).await
}

/// All messages that the filter finds, oldest first, with no payload kept.
async fn find(app: &App, filter: &Filter) -> Result<Vec<Message>, Error> {
    let mut found = Vec::new();
    let mut position = Position::Page(Page::new(Some(Page::MAX_LIMIT), None));
    loop {
        let page = app.log.list(filter, position).await?;
        if page.total > AT_MOST {
            let message = format!(
                "{} messages fit, and one call takes up {AT_MOST}: narrow it down",
                page.total
            );
            return Err(Error::precondition(message));
        }
        found.extend(page.messages.into_iter().map(without_payload));
        match page.next {
            // Messages that arrive meanwhile do not make it endless.
            Some(cursor) if (found.len() as u64) < AT_MOST => {
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
async fn taken_up(
    taken: impl Stream<Item = Result<MessageId, Error>>,
) -> Result<Vec<MessageId>, Error> {
    let mut ids = Vec::new();
    let mut taken = std::pin::pin!(taken);
    while let Some(next) = taken.next().await {
        match next {
            Ok(id) => ids.push(id),
            Err(error) if matches!(error.code, Code::NotFound | Code::FailedPrecondition) => {}
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
