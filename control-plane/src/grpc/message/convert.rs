//! Messages between the wire and the log.

use bytes::Bytes;
use kanat_message_log::{Cursor, Message, MessagePage, TraceRecord};
use kanat_model::id::MessageId;
use kanat_model::message::Failure;
use kanat_model::page::Page;
use kanat_model::{Error, saturated};
use kanat_proto::v1 as wire;

use crate::app::message::{Details, Follow, ListQuery, Part, Query, StreamItem};
use crate::carry::carry;
use crate::grpc::page::{asked_beside, pagination};

pub fn list(request: wire::ListMessagesRequest) -> Result<(ListQuery, Part), Error> {
    let cursor = request.cursor.as_deref();
    let part = Part {
        page: asked_beside(cursor, request.limit, request.offset)?,
        cursor: request.cursor,
    };
    let query = carry!(
        ListQuery, request { flow_id, since, until, search }
        with {
            statuses: request.status,
        }
    );
    Ok((query, part))
}

pub fn bulk(request: wire::BulkMessagesRequest) -> Query {
    carry!(
        Query,
        request {
            flow_id,
            status,
            since,
            until,
            search,
            ids
        }
    )
}

/// Reads a request to follow messages. The header wins over the request: a browser that reconnects
/// sends it.
pub fn follow(request: wire::StreamMessagesRequest, header: Option<String>) -> Follow {
    carry!(
        Follow, request { flow_id, status }
        with {
            last_event_id: header.or(request.last_event_id),
        }
    )
}

pub fn page(found: MessagePage, page: Page) -> wire::ListMessagesResponse {
    let mut pagination = pagination(page, found.total);
    pagination.next_cursor = found.next.map(Cursor::to_text);
    pagination.total_is_least = found.total_is_least.then_some(true);
    let data = found.messages.into_iter().map(message).collect();
    wire::ListMessagesResponse {
        data,
        pagination: Some(pagination),
    }
}

pub fn traced(found: Details) -> wire::Message {
    wire::Message {
        trace: found.trace.into_iter().map(trace_entry).collect(),
        waits_for: found.waits_for,
        ..message(found.message)
    }
}

pub fn taken_up(ids: Vec<MessageId>) -> wire::BulkMessagesResponse {
    wire::BulkMessagesResponse {
        count: saturated(ids.len()),
        message_ids: ids.into_iter().map(MessageId::into_string).collect(),
    }
}

pub fn event(followed: StreamItem) -> wire::StreamMessagesResponse {
    match followed {
        StreamItem::Event(event) => wire::StreamMessagesResponse {
            id: event.seq.to_string(),
            event: "message".to_owned(),
            message: Some(message(event.message)),
            lagged: None,
        },
        StreamItem::Lagged { resume_from } => wire::StreamMessagesResponse {
            id: resume_from.to_string(),
            event: "lagged".to_owned(),
            message: None,
            lagged: Some(wire::StreamLag {
                resume_from: resume_from.to_string(),
            }),
        },
    }
}

/// A message without its trace.
fn message(message: Message) -> wire::Message {
    let duration = message
        .completed_at
        .map(|completed_at| completed_at.since(message.received_at));
    carry!(
        wire::Message, message {
            flow_name, flow_version, attempts, max_attempts, batch_id, ordering_key,
        }
        text { id, flow_id, environment_id, received_at }
        optional { next_attempt_at, completed_at, replay_of }
        word { status, trigger }
        with {
            payload: json(&message.payload),
            output: message.output.as_ref().and_then(json),
            error: message.error.map(failure),
            duration_ms: duration
                .map(|duration| saturated(duration.as_millis())),
            trace: Vec::new(),
            waits_for: None,
        }
    )
}

/// A reason why something failed.
pub fn failure(failure: Failure) -> wire::MessageError {
    carry!(
        wire::MessageError, failure { message, field, expression }
        word { kind }
    )
}

/// A record of a trace.
pub fn trace_entry(record: TraceRecord) -> wire::TraceEntry {
    carry!(
        wire::TraceEntry, record { stage, name, status, duration_ms, error, attempt }
        text { at }
        with {
            request: record.request.map(|text| wire::Json { text }),
            response: record.response.map(|text| wire::Json { text }),
        }
    )
}

/// Payloads are JSON, and so UTF-8; whatever else stands in the log shows as nothing.
fn json(bytes: &Bytes) -> Option<wire::Json> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())?;
    Some(wire::Json {
        text: text.to_owned(),
    })
}
