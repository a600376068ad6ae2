//! The live stream of messages: every change of state, in the log's order, from where the caller left off.

use std::collections::VecDeque;

use futures::stream::{Stream, try_unfold};
use kanat_message_log::{Event, EventQuery};
use kanat_model::Error;
use kanat_model::id::FlowId;
use tokio::sync::watch;

use super::{filter, tenant};
use crate::app::{App, Caller};

/// What a caller wants to follow.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// All flows of the environment when left out.
    pub flow_id: Option<String>,
    pub status: Option<String>,
    /// The id of the last event seen; when left out, the stream begins with what happens next.
    pub last_event_id: Option<String>,
}

/// The events, until the log closes or the caller goes.
pub async fn follow(
    app: &App,
    caller: &Caller,
    follow: Follow,
) -> Result<impl Stream<Item = Result<Event, Error>> + Send + use<>, Error> {
    // Before the first read, so that nothing falls in between.
    let changed = app.log.changed();
    let last = app.log.last_event().await?;
    let after = match follow.last_event_id {
        Some(text) => {
            let seen: i64 = text.parse().map_err(|_| no_event(&text))?;
            // An id from a log that is no more: what happens next is all that there is to tell.
            seen.min(last)
        }
        None => last,
    };
    let flow_id = follow.flow_id.filter(|id| id != filter::ALL_FLOWS).map(FlowId::new);
    if let Some(flow_id) = &flow_id {
        super::check_flow(app, caller, flow_id).await?;
    }
    let query = EventQuery {
        flow_id,
        status: filter::status(follow.status.as_deref())?,
        ..EventQuery::after(tenant(caller), after)
    };
    let following = Following { log: app.log.clone(), query, changed, read: VecDeque::new(), more: true };
    Ok(try_unfold(
        following,
        |mut following| async move { Ok(following.next().await?.map(|event| (event, following))) },
    ))
}

fn no_event(text: &str) -> Error {
    Error::field("lastEventId", format!("{text:?} is no id of an event"))
}

struct Following {
    log: std::sync::Arc<dyn kanat_message_log::MessageLog>,
    query: EventQuery,
    changed: watch::Receiver<u64>,
    read: VecDeque<Event>,
    /// There is more to read now.
    more: bool,
}

impl Following {
    async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(Some(event));
            }
            if !self.more && self.changed.changed().await.is_err() {
                return Ok(None);
            }
            self.changed.borrow_and_update();
            let page = self.log.events(&self.query).await?;
            self.query.after = page.next_after;
            self.more = page.more;
            self.read = page.events.into();
        }
    }
}
