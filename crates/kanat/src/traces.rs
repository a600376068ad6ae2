//! Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON, in batches. Traces are for
//! looking at; what cannot be sent is dropped, counted and said, and holds nothing up.

use std::time::Duration;

use kanat_telemetry::metrics;
use kanat_telemetry::spans::{self, SpanData};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
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
        let exporter = exporter(endpoint)
            .inspect_err(|error| tracing::warn!(%error, "traces cannot be sent"))
            .ok()?;
        let spans = spans::take()?;
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(run(exporter, spans, stop.clone()));
        Some(Self { stop, tasks })
    }

    /// Sends what is left.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(FAREWELL, self.tasks.wait()).await;
    }
}

/// Makes the exporter. The operator says where spans go, as for the log; no user can.
#[expect(
    clippy::disallowed_methods,
    reason = "the address is the operator's, no user directs it"
)]
fn exporter(endpoint: &str) -> Result<SpanExporter, anyhow::Error> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .build()?;
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_protocol(Protocol::HttpJson)
        .with_timeout(TIMEOUT)
        .build()?;
    let resource = Resource::builder_empty().with_attributes([
        KeyValue::new("service.name", "kanat"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
    ]);
    exporter.set_resource(&resource.build());
    Ok(exporter)
}

async fn run(exporter: SpanExporter, mut spans: Receiver<SpanData>, stop: CancellationToken) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let filled =
            async { while batch.len() < BATCH && spans.recv_many(&mut batch, BATCH).await > 0 {} };
        let stopping = tokio::select! {
            biased;
            () = stop.cancelled() => true,
            _ = tokio::time::timeout(EVERY, filled) => false,
        };
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
        }
        while !batch.is_empty() {
            let part: Vec<_> = batch.drain(..batch.len().min(BATCH)).collect();
            let count = part.len();
            if let Err(error) = exporter.export(part).await {
                metrics().spans_dropped.inc_by(count as u64);
                tracing::warn!(%error, spans = count, "traces cannot be sent");
            }
        }
        if stopping {
            return;
        }
    }
}
