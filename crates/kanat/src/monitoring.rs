//! Metrics and probes on a port of their own, so that senders of webhooks cannot read them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use kanat_message_log::{MessageLog, Waiting};
use kanat_model::Timestamp;
use kanat_net::server::Places;
use kanat_net::{Body, Inbound, body, server};
use kanat_telemetry::metrics::{self, Readings};

use crate::process::listener::{self, Port};
use crate::process::ports::Ports;
use crate::settings::process::Settings;

/// Time limit for the log's answer about its backlog; after it the log is out of reach.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// Scrapers and probes are few. One of them gets a quarter, as on every listener.
const CONNECTIONS: usize = 64;
const OF_A_PEER: usize = CONNECTIONS / 4;

/// The parts of this process that are watched.
pub struct Monitoring {
    pub log: Arc<dyn MessageLog>,
    pub control: Option<kanat_control_plane::Monitor>,
    pub data: Option<kanat_data_plane::Monitor>,
}

/// Binds the port of the settings, if there is one.
pub async fn bind(settings: &Settings) -> Result<Option<Port>> {
    let Some(address) = settings.metrics_listen else {
        return Ok(None);
    };
    let names = ["metrics_tls_cert", "metrics_tls_key"];
    let tls = settings
        .metrics_tls
        .as_ref()
        .map(|files| listener::tls(files, None, names))
        .transpose()?;
    let options = server::Options {
        places: Places::new(CONNECTIONS, OF_A_PEER),
        tls,
        ..server::Options::default()
    };
    let port = Port::bind(address, options).await?;
    tracing::info!(url = port.url(), "metrics are served");
    Ok(Some(port))
}

/// Answers `/metrics`, `/health` and `/ready`, also while the process drains.
pub fn serve(port: Port, watched: Monitoring) -> Ports {
    let watched = Arc::new(watched);
    let ports = Ports::default();
    ports.serve(
        port,
        tower::service_fn(move |request: Request<Inbound>| {
            let watched = Arc::clone(&watched);
            async move {
                Ok::<_, Infallible>(watched.answer(request.method(), request.uri().path()).await)
            }
        }),
    );
    ports
}

impl Monitoring {
    async fn answer(&self, method: &Method, path: &str) -> Response<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response = text(
                StatusCode::METHOD_NOT_ALLOWED,
                "this address takes GET, HEAD\n",
            );
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path {
            "/metrics" => {
                let mut response = text(
                    StatusCode::OK,
                    metrics::metrics().text(self.readings().await),
                );
                let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
            "/health" => text(StatusCode::OK, "ok\n"),
            "/ready" if self.is_ready().await => text(StatusCode::OK, "ready\n"),
            "/ready" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /health and /ready\n",
            ),
        }
    }

    async fn is_ready(&self) -> bool {
        let control = async {
            match &self.control {
                Some(control) => control.ready().await,
                None => true,
            }
        };
        let data = async {
            match &self.data {
                Some(data) => data.ready().await,
                None => true,
            }
        };
        control.await && data.await
    }

    async fn readings(&self) -> Readings {
        let waiting = tokio::time::timeout(LOG_TIMEOUT, self.log.waiting())
            .await
            .ok()
            .and_then(Result::ok);
        let stats = self.log.stats();
        let now = Timestamp::steady();
        let log = metrics::Log {
            commits: stats.commits,
            operations: stats.operations,
            appended: stats.appended,
            settled: stats.settled,
            claimed: stats.claimed,
            waiting: waiting.map(|flows| {
                flows
                    .into_iter()
                    .filter_map(|flow| backlog(flow, now))
                    .collect()
            }),
        };
        Readings {
            log: Some(log),
            node: self.data.as_ref().map(kanat_data_plane::Monitor::readings),
            control_plane: self
                .control
                .as_ref()
                .map(kanat_control_plane::Monitor::readings),
        }
    }
}

/// Returns the messages of a flow that are due by `now`; nothing when all of them wait for a later
/// instant.
fn backlog(flow: Waiting, now: Timestamp) -> Option<metrics::Waiting> {
    let oldest = now.since(flow.oldest?);
    Some(metrics::Waiting {
        flow_id: flow.flow_id.into_string(),
        messages: flow.due,
        oldest,
    })
}

fn text(status: StatusCode, text: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
