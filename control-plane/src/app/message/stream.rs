//! The live stream of messages: every change of state, in the log's order, from where the caller
//! left off.

use std::collections::VecDeque;

use futures::stream::{Stream, try_unfold};
use kanat_message_log::{Event, EventQuery};
use kanat_model::id::FlowId;
use kanat_model::{Error, Result};
use tokio::sync::watch;

use super::filter;
use crate::app::Call;

/// Bytes of payloads and outputs by which a reader may lag.
const MAX_LAG: u64 = 16 << 20;

/// Filter and position of a stream that a caller follows.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// All flows of the environment when left out.
    pub flow_id: Option<String>,
    pub status: Option<String>,
    /// The id of the last event seen; when left out, the stream begins with what happens next.
    pub last_event_id: Option<String>,
}

/// Item of a stream.
#[derive(Debug)]
pub enum StreamItem {
    Event(Box<Event>),
    /// The reader lags: the stream ends, and another one goes on after this event.
    Lagged {
        resume_from: i64,
    },
}

/// The events, until the log closes or the caller goes, or lags.
pub async fn follow(
    call: &Call,
    follow: Follow,
) -> Result<impl Stream<Item = Result<StreamItem>> + Send + use<>> {
    // Before the first read, so that nothing falls in between.
    let changed = call.app.log.changed();
    let last = call.app.log.last_event().await?;
    let after = match follow.last_event_id {
        Some(text) => {
            let seen: i64 = text.parse().map_err(|_| no_event(&text))?;
            // An id from a log that is no more: what happens next is all that there is to tell.
            seen.min(last)
        }
        None => last,
    };
    let flow_id = follow
        .flow_id
        .filter(|id| id != filter::ALL_FLOWS)
        .map(FlowId::new);
    if let Some(flow_id) = &flow_id {
        super::check_flow(call, flow_id).await?;
    }
    let query = EventQuery {
        flow_id,
        status: filter::status(follow.status.as_deref())?,
        ..EventQuery::after(call.caller.tenant(), after)
    };
    let following = Following {
        log: call.app.log.clone(),
        query,
        changed,
        read: VecDeque::new(),
        more: true,
        // A reader that begins at the end has everything.
        lag: Lag {
            lag_bytes: (after == last).then_some(0),
            last_sent: after,
        },
        ended: false,
    };
    Ok(try_unfold(following, |mut following| async move {
        Ok(following
            .next()
            .await?
            .map(|followed| (followed, following)))
    }))
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
    lag: Lag,
    ended: bool,
}

impl Following {
    async fn next(&mut self) -> Result<Option<StreamItem>> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.lag.sent(&event);
                return Ok(Some(StreamItem::Event(Box::new(event))));
            }
            if self.ended {
                return Ok(None);
            }
            if self.more && self.lag.is_too_far() {
                self.ended = true;
                return Ok(Some(StreamItem::Lagged {
                    resume_from: self.lag.last_sent,
                }));
            }
            if !self.more {
                self.lag.lag_bytes = Some(0);
                if self.changed.changed().await.is_err() {
                    return Ok(None);
                }
            }
            self.changed.borrow_and_update();
            let page = self.log.events(&self.query).await?;
            self.query.after = page.next_after;
            self.more = page.more;
            self.read = page.events.into();
        }
    }
}

/// Lag of a reader. A reader that was at the end keeps up from then on. A reader that begins with
/// earlier events may take its time until it is there.
#[derive(Debug)]
struct Lag {
    /// Bytes that were sent since the reader was last at the end; none before it was.
    lag_bytes: Option<u64>,
    last_sent: i64,
}

impl Lag {
    fn sent(&mut self, event: &Event) {
        self.last_sent = event.seq;
        if let Some(lag_bytes) = &mut self.lag_bytes {
            let output = event
                .message
                .output
                .as_ref()
                .map_or(0, |output| output.len());
            *lag_bytes = lag_bytes.saturating_add((event.message.payload.len() + output) as u64);
        }
    }

    fn is_too_far(&self) -> bool {
        self.lag_bytes.is_some_and(|lag_bytes| lag_bytes > MAX_LAG)
    }
}
