//! Messages between the wire and the log.

use bytes::Bytes;
use kanat_message_log::{Cursor, Message, MessagePage, TraceRecord};
use kanat_model::id::MessageId;
use kanat_model::message::Failure;
use kanat_model::page::Page;
use kanat_proto::v1 as wire;
use tonic::Status;

use crate::app::message::{Follow, ListQuery, Part, Query, StreamItem};
use crate::grpc::page::{asked, pagination};

pub fn list(request: wire::ListMessagesRequest) -> Result<(ListQuery, Part), Status> {
    let wire::ListMessagesRequest {
        flow_id,
        status,
        since,
        until,
        search,
        limit,
        offset,
        cursor,
    } = request;
    let query = ListQuery {
        flow_id,
        statuses: status,
        since,
        until,
        search,
    };
    Ok((
        query,
        Part {
            page: asked(limit, offset)?,
            cursor,
        },
    ))
}

pub fn bulk(request: wire::BulkMessagesRequest) -> Query {
    let wire::BulkMessagesRequest {
        flow_id,
        status,
        since,
        until,
        search,
        ids,
    } = request;
    Query {
        flow_id,
        status,
        since,
        until,
        search,
        ids,
    }
}

/// Reads a request to follow messages. The header wins over the request: a browser that reconnects
/// sends it.
pub fn follow(request: wire::StreamMessagesRequest, header: Option<String>) -> Follow {
    let wire::StreamMessagesRequest {
        flow_id,
        status,
        last_event_id,
    } = request;
    Follow {
        flow_id,
        status,
        last_event_id: header.or(last_event_id),
    }
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

pub fn traced(found: Message, trace: Vec<TraceRecord>) -> wire::Message {
    wire::Message {
        trace: trace.into_iter().map(trace_entry).collect(),
        ..message(found)
    }
}

pub fn taken_up(ids: Vec<MessageId>) -> wire::BulkMessagesResponse {
    wire::BulkMessagesResponse {
        count: u32::try_from(ids.len()).unwrap_or(u32::MAX),
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
    wire::Message {
        id: message.id.into_string(),
        flow_id: message.flow_id.into_string(),
        flow_name: message.flow_name,
        flow_version: message.flow_version,
        environment_id: message.environment_id.into_string(),
        status: message.status.as_str().to_owned(),
        trigger: message.trigger.as_str().to_owned(),
        payload: json(&message.payload),
        output: message.output.as_ref().and_then(json),
        attempts: message.attempts,
        max_attempts: message.max_attempts,
        next_attempt_at: message.next_attempt_at.map(|at| at.to_string()),
        error: message.error.map(failure),
        received_at: message.received_at.to_string(),
        completed_at: message.completed_at.map(|at| at.to_string()),
        duration_ms: duration
            .map(|duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)),
        batch_id: message.batch_id,
        replay_of: message.replay_of.map(MessageId::into_string),
        ordering_key: message.ordering_key,
        trace: Vec::new(),
    }
}

fn failure(failure: Failure) -> wire::MessageError {
    wire::MessageError {
        kind: failure.kind.as_str().to_owned(),
        message: failure.message,
        field: failure.field,
        expression: failure.expression,
    }
}

/// A record of a trace.
pub fn trace_entry(record: TraceRecord) -> wire::TraceEntry {
    wire::TraceEntry {
        at: record.at.to_string(),
        stage: record.stage,
        name: record.name,
        status: record.status,
        duration_ms: record.duration_ms,
        request: record.request.map(|text| wire::Json { text }),
        response: record.response.map(|text| wire::Json { text }),
        error: record.error,
        attempt: record.attempt,
    }
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
