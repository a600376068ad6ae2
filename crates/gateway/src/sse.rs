//! Server-sent events: a stream of messages over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kanat_net::Body;
use kanat_net::body::BoxError;
use tonic::Status;

use crate::call::{Answer, Messages};
use crate::error::Problem;
use crate::header;
use crate::route::Rpc;

struct Events {
    messages: Messages,
    rpc: Arc<Rpc>,
    heartbeat: Duration,
    request_id: String,
    ended: bool,
}

/// Answers at once, and then sends every message as it arrives. A comment is sent after each
/// `heartbeat` without one. An error is the last event, named `error`.
pub(crate) fn stream(
    answer: Answer,
    rpc: Arc<Rpc>,
    heartbeat: Duration,
    request_id: String,
) -> Response<Body> {
    let headers = header::from_metadata(&answer.metadata);
    let events = Events {
        messages: answer.messages,
        rpc,
        heartbeat,
        request_id,
        ended: false,
    };
    let frames = stream::unfold(events, |mut events| async move {
        let text = events.next().await?;
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from(text))), events))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.headers_mut() = headers;
    for (name, value) in [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

impl Events {
    async fn next(&mut self) -> Option<Vec<u8>> {
        if self.ended {
            return None;
        }
        let next = tokio::time::timeout(self.heartbeat, self.messages.next());
        let event = match next.await {
            Err(_) => return Some(b":\n\n".to_vec()),
            Ok(next) => next.and_then(|bytes| bytes.map(|bytes| self.event(bytes)).transpose()),
        };
        match event {
            Ok(Some(event)) => Some(event),
            Ok(None) => None,
            Err(status) => {
                self.ended = true;
                let problem = Problem::of_status(&status, &self.rpc.input);
                Some(write(Some("error"), None, &problem.body(&self.request_id)))
            }
        }
    }

    fn event(&self, bytes: Bytes) -> Result<Vec<u8>, Status> {
        let message = self.rpc.decode(bytes)?;
        let text = |name: &str| {
            message
                .get_field_by_name(name)
                .and_then(|v| v.as_str().map(str::to_owned))
        };
        let named = || text("event").and_then(|event| self.rpc.output.get_field_by_name(&event));
        let field = match &self.rpc.rest.event_data {
            Some(field) if !message.has_field(field) => named().or_else(|| Some(field.clone())),
            field => field.clone(),
        };
        let data = self.rpc.json(&message, field.as_ref());
        Ok(write(
            text("event").as_deref(),
            text("id").as_deref(),
            &data,
        ))
    }
}

/// Writes an event with one line for each field. `data` has no line breaks.
fn write(event: Option<&str>, id: Option<&str>, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    for (name, value) in [("event", event), ("id", id)] {
        if let Some(value) = value.filter(|v| !v.is_empty() && !v.contains(['\n', '\r', '\0'])) {
            out.extend_from_slice(format!("{name}: {value}\n").as_bytes());
        }
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
    out
}
