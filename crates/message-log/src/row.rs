//! Reading of rows, the same for both databases.

use std::collections::BTreeMap;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::trace;
use crate::{
    Backlog, ClaimedMessage, Content, Cursor, Event, EventPage, Lease, Message, PollCycleEnd,
    PollStanding, SeenRecord, Step, TraceRecord, Waiting,
};

type Result<T> = std::result::Result<T, sqlx::Error>;

/// Columns of a row by their names.
pub(crate) trait Columns {
    fn str(&self, column: &str) -> Result<&str>;
    fn optional_str(&self, column: &str) -> Result<Option<&str>>;
    fn number(&self, column: &str) -> Result<i64>;
    fn optional_number(&self, column: &str) -> Result<Option<i64>>;
    fn bytes(&self, column: &str) -> Result<Bytes>;
    fn optional_bytes(&self, column: &str) -> Result<Option<Bytes>>;
    fn flag(&self, column: &str) -> Result<bool>;

    fn id<T: From<String>>(&self, column: &str) -> Result<T> {
        Ok(self.text(column)?.into())
    }

    fn text(&self, column: &str) -> Result<String> {
        Ok(self.str(column)?.to_owned())
    }

    fn optional_text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.optional_str(column)?.map(str::to_owned))
    }

    fn whole(&self, column: &str) -> Result<u32> {
        let number = self.number(column)?;
        u32::try_from(number).map_err(|_| unreadable(column, &number.to_string()))
    }

    /// A count or a size; 0 for a negative number, which no column has.
    fn unsigned(&self, column: &str) -> Result<u64> {
        Ok(u64::try_from(self.number(column)?).unwrap_or(0))
    }

    fn instant(&self, column: &str) -> Result<Timestamp> {
        self.number(column).map(Timestamp::from_millis)
    }

    fn optional_instant(&self, column: &str) -> Result<Option<Timestamp>> {
        Ok(self.optional_number(column)?.map(Timestamp::from_millis))
    }

    fn trigger(&self) -> Result<Trigger> {
        let text = self.str("trigger_kind")?;
        Trigger::parse(text).ok_or_else(|| unreadable("trigger", text))
    }

    fn status(&self) -> Result<Status> {
        let text = self.str("status")?;
        Status::parse(text).ok_or_else(|| unreadable("status", text))
    }
}

macro_rules! columns {
    ($($row:ty),*) => {$(
        impl Columns for $row {
            fn str(&self, column: &str) -> Result<&str> {
                self.try_get(column)
            }

            fn optional_str(&self, column: &str) -> Result<Option<&str>> {
                self.try_get(column)
            }

            fn number(&self, column: &str) -> Result<i64> {
                self.try_get(column)
            }

            fn optional_number(&self, column: &str) -> Result<Option<i64>> {
                self.try_get(column)
            }

            fn bytes(&self, column: &str) -> Result<Bytes> {
                self.try_get::<Vec<u8>, _>(column).map(Bytes::from)
            }

            fn optional_bytes(&self, column: &str) -> Result<Option<Bytes>> {
                Ok(self.try_get::<Option<Vec<u8>>, _>(column)?.map(Bytes::from))
            }

            fn flag(&self, column: &str) -> Result<bool> {
                self.try_get(column)
            }
        }
    )*};
}

columns!(PgRow, SqliteRow);

/// Columns that do not change with a message's state; `m` is `messages`, `b` is `bodies`.
macro_rules! fixed_columns {
    () => {
        "m.seq AS message_seq, m.id, m.account_id, m.environment_id, m.flow_id, m.flow_name, \
         m.flow_version,
         m.trigger_kind, m.max_attempts, m.received_at, m.batch_id, m.replay_of, m.ordering_key, \
         m.traceparent,
         coalesce(b.payload, b.raw_body) AS payload"
    };
}

/// Columns of a message's present state.
macro_rules! present_columns {
    () => {
        "m.status, m.attempts, m.due_at, m.completed_at, m.error_kind, m.error_message,
         m.error_field, m.error_expression,
         (SELECT t.output FROM transitions AS t WHERE t.message = m.seq AND t.output IS NOT NULL
            ORDER BY t.seq DESC LIMIT 1) AS output"
    };
}

pub(crate) use fixed_columns;

/// Columns of [`message`] in its present state.
pub(crate) const PAGE: &str = concat!("SELECT ", fixed_columns!(), ", ", present_columns!());

/// Reads all rows with one function.
pub(crate) fn all<R, T>(rows: &[R], read: impl Fn(&R) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}

pub(crate) fn message(row: &impl Columns) -> Result<Message> {
    let status = row.status()?;
    Ok(Message {
        id: row.id("id")?,
        seq: row.number("message_seq")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        flow_id: row.id("flow_id")?,
        flow_name: row.text("flow_name")?,
        flow_version: row.whole("flow_version")?,
        status,
        trigger: row.trigger()?,
        payload: row.bytes("payload")?,
        output: row.optional_bytes("output")?,
        attempts: row.whole("attempts")?,
        max_attempts: row.whole("max_attempts")?,
        next_attempt_at: row
            .optional_instant("due_at")?
            .filter(|_| status == Status::Retrying)
            .map(Timestamp::to_wall),
        error: failure(row)?,
        received_at: row.instant("received_at")?,
        completed_at: row.optional_instant("completed_at")?,
        batch_id: row.optional_text("batch_id")?,
        replay_of: row.optional_text("replay_of")?.map(MessageId::from),
        ordering_key: row.optional_text("ordering_key")?,
        traceparent: row.optional_text("traceparent")?,
    })
}

fn failure(row: &impl Columns) -> Result<Option<Failure>> {
    let Some(kind) = row.optional_str("error_kind")? else {
        return Ok(None);
    };
    Ok(Some(Failure {
        kind: ErrorKind::parse(kind).ok_or_else(|| unreadable("error kind", kind))?,
        message: row.optional_text("error_message")?.unwrap_or_default(),
        field: row.optional_text("error_field")?,
        expression: row.optional_text("error_expression")?,
    }))
}

pub(crate) fn event(row: &impl Columns) -> Result<Event> {
    Ok(Event {
        seq: row.number("seq")?,
        message: message(row)?,
    })
}

/// Returns the size of the bodies of a message.
pub(crate) fn size(row: &impl Columns) -> Result<u64> {
    row.unsigned("bytes")
}

/// Returns the position of a message in the order of arrival.
pub(crate) fn cursor(row: &impl Columns) -> Result<Cursor> {
    Ok(Cursor {
        received_at: row.instant("received_at")?,
        seq: row.number("seq")?,
    })
}

/// Returns the sequence number of an event and the size of its bodies.
pub(crate) fn event_size(row: &impl Columns) -> Result<(i64, u64)> {
    Ok((row.number("seq")?, row.unsigned("bytes")?))
}

/// Returns a page of the events in `rows`, which are in any order. `next_after` is where the next
/// page begins, `last` the last event of the log.
pub(crate) fn event_page(rows: &[impl Columns], next_after: i64, last: i64) -> Result<EventPage> {
    let mut events = all(rows, event)?;
    events.sort_by_key(|event| event.seq);
    Ok(EventPage {
        events,
        next_after,
        more: next_after < last,
    })
}

/// Reads a message as its present holder has it, without bodies and steps.
pub(crate) fn claimed(row: &impl Columns) -> Result<ClaimedMessage> {
    let ordering_key = row.optional_text("ordering_key")?;
    Ok(ClaimedMessage {
        lease: Lease {
            message_id: row.id("id")?,
            seq: row.number("seq")?,
            owner: row.id("owner")?,
            token: row.number("token")?,
            ordered: ordering_key.is_some(),
        },
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        flow_id: row.id("flow_id")?,
        flow_name: row.text("flow_name")?,
        flow_version: row.whole("flow_version")?,
        trigger: row.trigger()?,
        raw_body: Bytes::new(),
        payload: Bytes::new(),
        request: Bytes::new(),
        stored_bytes: row.unsigned("size_bytes")?,
        received_at: row.instant("received_at")?,
        due_at: row.instant("due_at")?,
        attempts: row.whole("attempts")?,
        max_attempts: row.whole("max_attempts")?,
        ordering_key,
        traceparent: row.optional_text("traceparent")?,
        steps: Vec::new(),
    })
}

pub(crate) fn content(row: &impl Columns) -> Result<Content> {
    Ok(Content {
        raw_body: row.bytes("raw_body")?,
        payload: row.optional_bytes("payload")?,
        request: row.bytes("request")?,
    })
}

pub(crate) fn step(row: &impl Columns) -> Result<Step> {
    Ok(Step {
        name: row.text("name")?,
        status: row.whole("status")?,
        output: row.bytes("output")?,
    })
}

/// Returns the trace of a message, whose events are `rows`. The node that runs a message records
/// the arrival. Until it does, the arrival is taken from the message.
pub(crate) fn trace(rows: &[impl Columns]) -> Result<Vec<TraceRecord>> {
    let mut records: Vec<TraceRecord> = Vec::new();
    for row in rows {
        if let Some(text) = row.optional_str("trace")? {
            let read = serde_json::from_str::<Vec<TraceRecord>>(text);
            records.extend(read.map_err(|error| {
                sqlx::Error::Decode(format!("a trace cannot be read: {error}").into())
            })?);
        }
    }
    if let Some(row) = rows.first()
        && !records.iter().any(|record| record.stage == "received")
    {
        let at = row.instant("received_at")?;
        records.insert(0, trace::record(at, "received", row.trigger()?.as_str(), 0));
    }
    Ok(records)
}

/// Returns the waiting messages of each flow. A flow may have several rows, one for each owner.
pub(crate) fn waiting(rows: &[impl Columns]) -> Result<Vec<Waiting>> {
    let mut flows: BTreeMap<&str, Waiting> = BTreeMap::new();
    for row in rows {
        let flow_id = row.str("flow_id")?;
        let flow = flows.entry(flow_id).or_insert_with(|| Waiting {
            flow_id: FlowId::new(flow_id),
            due: 0,
            oldest: None,
            next_due: None,
        });
        flow.due = (flow.due + row.unsigned("due")?).min(Waiting::COUNT_LIMIT);
        let oldest = row.optional_instant("oldest")?;
        flow.oldest = flow.oldest.into_iter().chain(oldest).min();
        let next_due = row.optional_instant("next_due")?;
        flow.next_due = flow.next_due.into_iter().chain(next_due).min();
    }
    Ok(flows.into_values().collect())
}

pub(crate) fn backlog(row: &impl Columns) -> Result<Backlog> {
    Ok(Backlog {
        flow_id: row.id("flow_id")?,
        messages: row.unsigned("messages")?,
        bytes: row.unsigned("bytes")?,
        oldest: row.optional_instant("oldest")?,
    })
}

pub(crate) fn poll_standing(row: &impl Columns) -> Result<(FlowId, PollStanding)> {
    let error = row.optional_text("error")?;
    let standing = PollStanding {
        due_at: row.instant("due_at")?.to_wall(),
        held_until: row.instant("held_until")?.to_wall(),
        ended: row
            .optional_instant("ended_at")?
            .map(|at| PollCycleEnd { at, error }),
    };
    Ok((row.id("flow_id")?, standing))
}

pub(crate) fn seen_record(row: &impl Columns) -> Result<SeenRecord> {
    Ok(SeenRecord {
        id: row.text("id")?,
        hash: row.text("hash")?,
        count: row.number("count")?,
        seen_at: row.instant("seen_at")?,
    })
}

/// Returns the error for a value that this build does not know.
pub(crate) fn unreadable(what: &str, text: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("a row has the unknown {what} {text:?}").into())
}
