//! A message in memory while this node processes it.

use bytes::Bytes;
use http::HeaderValue;
use kanat_message_log::Step;
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Trigger;
use kanat_telemetry::spans::{self, Kind, Span};
use serde::Deserialize;

use crate::trace_context;

/// Member of the `trigger` document with the violations that a lenient API tolerates.
const NOTED: &str = "\"validation\":";

/// Parts of a message that a run needs.
#[derive(Clone)]
pub(crate) struct MessageInMemory {
    pub id: MessageId,
    pub trigger_kind: Trigger,
    /// Valid JSON.
    pub payload: Bytes,
    /// Body as received.
    pub raw_body: Bytes,
    /// Value of `trigger` in expressions.
    pub trigger_document: Bytes,
    /// Outputs of the steps that have succeeded.
    pub steps: Vec<Step>,
    pub received_at: Timestamp,
    /// Size in the backlog, in bytes.
    pub stored_bytes: u64,
    /// Attempts that have ended.
    pub attempts: u32,
    pub max_attempts: u32,
    /// The context of its trace, see [`trace_context`].
    pub traceparent: Option<String>,
}

impl MessageInMemory {
    /// Returns the number of the current attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempts.saturating_add(1)
    }

    /// Begins the span of an attempt, the parent of its calls; `None` when spans are not exported.
    pub fn begin_attempt(&mut self, flow: &FlowId) -> Option<Span> {
        if !spans::taken() {
            return None;
        }
        let context = self.traceparent.take();
        let own = trace_context::child(context.as_deref(), &self.id);
        let span = Span::begin(
            "run",
            Kind::Internal,
            &own,
            context.as_deref().map(trace_context::parent),
        );
        let state = context
            .as_deref()
            .and_then(trace_context::state)
            .unwrap_or_default();
        self.traceparent = Some(trace_context::with_state(own, state));
        let attempt = self.attempt().to_string();
        let span = span?
            .with("kanat.message.id", self.id.as_str())
            .with("kanat.flow.id", flow.as_str());
        Some(span.with("kanat.attempt", attempt))
    }

    /// Returns the size of the message in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let outputs: usize = self.steps.iter().map(|step| step.output.len()).sum();
        cost(&self.payload, &self.raw_body, &self.trigger_document) + outputs
    }

    /// Returns the violations that a lenient published API tolerated, as text.
    pub fn noted(&self) -> Option<String> {
        // Nearly every call has no violations, and a search is much cheaper than parsing.
        let document = std::str::from_utf8(&self.trigger_document).ok()?;
        if self.trigger_kind != Trigger::Api || !document.contains(NOTED) {
            return None;
        }
        let document: Document = serde_json::from_str(document).ok()?;
        let faults = document
            .validation
            .iter()
            .map(|fault| format!("{} {}", fault.field, fault.message));
        Some(faults.collect::<Vec<_>>().join("; ")).filter(|noted| !noted.is_empty())
    }

    /// Returns the declared content type of the body, or the one that was assumed.
    pub fn content_type(&self) -> HeaderValue {
        let document: Document = serde_json::from_slice(&self.trigger_document).unwrap_or_default();
        let declared = document
            .headers
            .content_type
            .filter(|text| !text.is_empty());
        declared
            .and_then(|text| HeaderValue::from_str(&text).ok())
            .unwrap_or_else(|| self.taken_for())
    }

    /// Returns the assumed content type: JSON, text, or bytes.
    fn taken_for(&self) -> HeaderValue {
        HeaderValue::from_static(match self.payload.first() {
            _ if self.payload == self.raw_body => "application/json",
            Some(b'"') => "text/plain; charset=utf-8",
            Some(_) | None => "application/octet-stream",
        })
    }
}

/// Returns the size of a message of these parts in memory, with its overhead.
pub(crate) fn cost(payload: &Bytes, raw_body: &Bytes, trigger: &Bytes) -> usize {
    let body = if payload.as_ptr() == raw_body.as_ptr() {
        0
    } else {
        raw_body.len()
    };
    payload.len() + body + trigger.len() + 1024
}

#[derive(Default, Deserialize)]
struct Document {
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    validation: Vec<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    field: String,
    message: String,
}

#[derive(Default, Deserialize)]
struct Headers {
    #[serde(rename = "content-type")]
    content_type: Option<String>,
}

#[cfg(test)]
impl Default for MessageInMemory {
    fn default() -> Self {
        Self {
            id: MessageId::new("msg_1"),
            trigger_kind: Trigger::Webhook,
            payload: Bytes::from_static(b"{}"),
            raw_body: Bytes::from_static(b"{}"),
            trigger_document: Bytes::from_static(b"{}"),
            steps: Vec::new(),
            received_at: Timestamp::from_millis(0),
            stored_bytes: 0,
            attempts: 0,
            max_attempts: 1,
            traceparent: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_content_type_and_is_what_it_was_taken_for_when_it_has_none() {
        let of = |trigger: &'static str| {
            MessageInMemory {
                trigger_document: trigger.into(),
                ..MessageInMemory::default()
            }
            .content_type()
        };
        assert_eq!(
            of(r#"{"headers":{"content-type":"text/xml; charset=utf-8"}}"#),
            "text/xml; charset=utf-8"
        );
        for without in [
            r#"{"headers":{}}"#,
            "{}",
            "",
            r#"{"headers":{"content-type":""}}"#,
        ] {
            assert_eq!(of(without), "application/json");
        }
        let taken = |payload: &'static str, raw_body: &'static [u8]| {
            MessageInMemory {
                payload: payload.into(),
                raw_body: raw_body.into(),
                ..MessageInMemory::default()
            }
            .content_type()
        };
        assert_eq!(taken(r#""hello""#, b"hello"), "text/plain; charset=utf-8");
        assert_eq!(
            taken(r#"{"base64":"/w=="}"#, b"\xff"),
            "application/octet-stream"
        );
    }
}
