//! Spans of OpenTelemetry traces, for an exporter. Without an exporter, beginning a span costs one
//! atomic load.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::metrics;

/// Spans that wait for the exporter. Further ones are dropped and counted.
const QUEUE_CAPACITY: usize = 8 * 1024;

static EXPORT: OnceLock<Sender<Span>> = OnceLock::new();

/// A span: one operation in a trace.
#[derive(Debug)]
pub struct Span {
    pub name: &'static str,
    pub kind: Kind,
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
    /// Parent span, 16 hexadecimal digits.
    pub parent_id: Option<String>,
    pub start: Timestamp,
    pub took: Duration,
    pub attributes: Vec<(&'static str, String)>,
    /// Error of the operation.
    pub failure: Option<String>,
    begun: Instant,
}

/// Kind of a span, by its side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal,
    Server,
    Client,
}

/// Registers the exporter; `None` when there is one already.
pub fn take() -> Option<Receiver<Span>> {
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
        let (trace_id, span_id) = sampled(traceparent)?;
        let parent_id = parent
            .and_then(|parent| parent.split('-').nth(2))
            .map(str::to_owned);
        Some(Self {
            name,
            kind,
            trace_id: trace_id.to_owned(),
            span_id: span_id.to_owned(),
            parent_id,
            start: Timestamp::now(),
            took: Duration::ZERO,
            attributes: Vec::new(),
            failure: None,
            begun: Instant::now(),
        })
    }

    #[must_use]
    pub fn with(mut self, attribute: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((attribute, value.into()));
        self
    }

    /// Ends the span and hands it to the exporter.
    pub fn end(mut self, failure: Option<String>) {
        self.took = self.begun.elapsed();
        self.failure = failure;
        if EXPORT
            .get()
            .is_none_or(|export| export.try_send(self).is_err())
        {
            metrics().spans_dropped.inc();
        }
    }
}

/// Returns the ids of trace and span of a sampled `traceparent`.
fn sampled(traceparent: &str) -> Option<(&str, &str)> {
    let mut parts = traceparent.split('-').skip(1);
    let trace = parts.next()?;
    let span = parts.next()?;
    let flags = parts.next()?;
    let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    sampled.then_some((trace, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_span_is_what_its_traceparent_names_under_its_parent() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";
        let span = Span::new("run", Kind::Internal, SAMPLED, Some(parent)).unwrap();
        assert_eq!(span.trace_id.as_str(), &SAMPLED[3..35]);
        assert_eq!(span.span_id.as_str(), "00f067aa0ba902b7");
        assert_eq!(span.parent_id.as_deref(), Some("1111111111111111"));
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
