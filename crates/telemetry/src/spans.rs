//! Spans of OpenTelemetry traces, for an exporter. Without an exporter, beginning a span costs one
//! atomic load.

use std::sync::OnceLock;
use std::time::{Duration, Instant, UNIX_EPOCH};

use kanat_model::Timestamp;
pub use opentelemetry::trace::SpanKind as Kind;
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
pub use opentelemetry_sdk::trace::SpanData;
use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::metrics;

/// Spans that wait for the exporter. Further ones are dropped and counted.
const QUEUE_CAPACITY: usize = 8 * 1024;

static EXPORT: OnceLock<Sender<SpanData>> = OnceLock::new();

/// A span: one operation in a trace. The SDK makes ids of its own for the spans that it begins;
/// ours are known before, because they travel with messages.
#[derive(Debug)]
pub struct Span {
    data: SpanData,
    begun: Instant,
}

/// Registers the exporter; `None` when there is one already.
pub fn take() -> Option<Receiver<SpanData>> {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    EXPORT.set(sender).ok().map(|()| receiver)
}

/// Returns whether spans are exported.
pub fn taken() -> bool {
    EXPORT.get().is_some()
}

impl Span {
    /// Begins the span of `traceparent` under the span of `parent`; `None` when spans are not
    /// exported, or the trace is not sampled.
    pub fn begin(
        name: &'static str,
        kind: Kind,
        traceparent: &str,
        parent: Option<&str>,
    ) -> Option<Self> {
        if taken() {
            Self::new(name, kind, traceparent, parent)
        } else {
            None
        }
    }

    fn new(
        name: &'static str,
        kind: Kind,
        traceparent: &str,
        parent: Option<&str>,
    ) -> Option<Self> {
        let span_context = context(traceparent).filter(SpanContext::is_sampled)?;
        let parent = parent.and_then(context);
        let begun = Instant::now();
        let since_1970 = Duration::from_millis(Timestamp::now().as_millis().unsigned_abs());
        let start_time = UNIX_EPOCH + since_1970;
        let data = SpanData {
            span_context,
            parent_span_id: parent.map_or(SpanId::INVALID, |parent| parent.span_id()),
            parent_span_is_remote: kind == Kind::Server,
            span_kind: kind,
            name: name.into(),
            start_time,
            end_time: start_time,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("kanat").build(),
        };
        Some(Self { data, begun })
    }

    #[must_use]
    pub fn with(mut self, attribute: &'static str, value: impl Into<String>) -> Self {
        self.data
            .attributes
            .push(KeyValue::new(attribute, value.into()));
        self
    }

    /// Ends the span and hands it to the exporter.
    pub fn end(mut self, failure: Option<String>) {
        self.data.end_time += self.begun.elapsed();
        if let Some(failure) = failure {
            self.data.status = Status::error(failure);
        }
        if EXPORT
            .get()
            .is_none_or(|export| export.try_send(self.data).is_err())
        {
            metrics().spans_dropped.inc();
        }
    }
}

/// Reads a `traceparent`.
fn context(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let state = TraceState::default();
    Some(SpanContext::new(
        trace,
        span,
        TraceFlags::new(flags),
        true,
        state,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_span_is_what_its_traceparent_names_under_its_parent() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";
        let span = Span::new("run", Kind::Internal, SAMPLED, Some(parent)).unwrap();
        let context = &span.data.span_context;
        assert_eq!(context.trace_id().to_string(), &SAMPLED[3..35]);
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert_eq!(span.data.parent_span_id.to_string(), "1111111111111111");
    }

    #[test]
    fn what_is_not_sampled_is_not_begun() {
        for traceparent in [
            &SAMPLED.replace("-01", "-00"),
            "",
            "00",
            "00-a-b",
            "00-a-b-xx",
        ] {
            assert!(
                Span::new("run", Kind::Internal, traceparent, None).is_none(),
                "{traceparent}"
            );
        }
        assert!(
            Span::begin("run", Kind::Internal, SAMPLED, None).is_none(),
            "nobody takes spans"
        );
    }
}
