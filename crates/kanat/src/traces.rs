//! Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON, in batches. Traces are for
//! looking at; what cannot be sent is dropped, counted and said, and holds nothing up.

use std::time::Duration;

use kanat_telemetry::metrics;
use kanat_telemetry::spans::{self, Kind, Span};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Spans of one request.
const BATCH: usize = 512;
/// A batch that is not full is sent after this long.
const EVERY: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the export of the last spans may take when the process ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// The export of a process.
pub struct Traces {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Traces {
    /// Sends to `endpoint`, such as `http://collector:4318`, until it is stopped; nothing without
    /// one.
    pub fn start(endpoint: Option<&str>) -> Option<Self> {
        let endpoint = endpoint?;
        let exporter = Exporter {
            url: format!("{}/v1/traces", endpoint.trim_end_matches('/')),
            http: client()?,
        };
        let spans = spans::take()?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(exporter.run(spans, stop.clone()));
        Some(Self { stop, tasks })
    }

    /// Sends what is left.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(FAREWELL, self.tasks.wait()).await;
    }
}

/// The operator says where spans go, as for the log; no user can.
#[expect(
    clippy::disallowed_methods,
    reason = "the address is the operator's, no user directs it"
)]
fn client() -> Option<reqwest::Client> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .build();
    client
        .inspect_err(|error| tracing::warn!(%error, "traces cannot be sent"))
        .ok()
}

struct Exporter {
    url: String,
    http: reqwest::Client,
}

impl Exporter {
    async fn run(self, mut spans: Receiver<Span>, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let filled = async {
                while batch.len() < BATCH && spans.recv_many(&mut batch, BATCH).await > 0 {}
            };
            let stopping = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                _ = tokio::time::timeout(EVERY, filled) => false,
            };
            while let Ok(span) = spans.try_recv() {
                batch.push(span);
            }
            for part in batch.chunks(BATCH) {
                self.send(part).await;
            }
            batch.clear();
            if stopping {
                return;
            }
        }
    }

    async fn send(&self, spans: &[Span]) {
        let answer = self.http.post(&self.url).json(&request(spans)).send().await;
        // The address may carry a password: an error that shows it is not for the log.
        let failed = answer
            .and_then(reqwest::Response::error_for_status)
            .map_err(reqwest::Error::without_url)
            .err();
        if let Some(error) = failed {
            metrics().spans_dropped.inc_by(spans.len() as u64);
            tracing::warn!(%error, spans = spans.len(), "traces cannot be sent");
        }
    }
}

/// An `ExportTraceServiceRequest` in OTLP's JSON form.
fn request(spans: &[Span]) -> Value {
    let resource = [
        ("service.name", "kanat"),
        ("service.version", env!("CARGO_PKG_VERSION")),
    ];
    json!({
        "resourceSpans": [
            {
                "resource": { "attributes": attributes(resource) },
                "scopeSpans": [
                    {
                        "scope": { "name": "kanat" },
                        "spans": spans.iter().map(span).collect::<Vec<_>>(),
                    },
                ],
            },
        ],
    })
}

fn span(span: &Span) -> Value {
    let start = u128::try_from(span.start.as_millis()).unwrap_or(0) * 1_000_000;
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let status = match &span.failure {
        None => json!({}),
        Some(message) => json!({ "code": 2, "message": message }),
    };
    json!({
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id.as_deref().unwrap_or_default(),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": (start + span.took.as_nanos()).to_string(),
        "attributes": attributes(
            span.attributes.iter().map(|(name, value)| (*name, value.as_str())),
        ),
        "status": status,
    })
}

fn attributes<'a>(attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let one = |(key, value)| json!({ "key": key, "value": { "stringValue": value } });
    attributes.into_iter().map(one).collect()
}
