//! A running process without its planes: message log, listeners and metrics.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use kanat_data_plane::DataPlane;
use kanat_message_log::MessageLog;
use kanat_net::{Body, Inbound, server};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::Port;
use crate::monitoring::{self, Monitoring};

/// Message log, listeners and metrics of a process.
pub struct Server {
    /// URL of the process from this machine.
    pub url: String,
    pub log: Arc<dyn MessageLog>,
    /// Cancelled when nothing more is accepted.
    pub shutdown: CancellationToken,
    listeners: TaskTracker,
    monitoring: Option<monitoring::Server>,
}

impl Server {
    /// Serves the metrics of the planes, where there is a port for them.
    pub fn new(
        url: String,
        log: Arc<dyn MessageLog>,
        metrics: Option<Port>,
        control: Option<kanat_control_plane::Monitor>,
        data: Option<kanat_data_plane::Monitor>,
    ) -> Self {
        let monitoring = metrics.map(|port| {
            let log = Arc::clone(&log);
            monitoring::Server::start(port, Monitoring { log, control, data })
        });
        Self {
            url,
            log,
            shutdown: CancellationToken::new(),
            listeners: TaskTracker::new(),
            monitoring,
        }
    }

    /// Serves a port until the shutdown.
    pub fn serve<S>(&self, port: Port, service: S)
    where
        S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let shutdown = self.shutdown.clone();
        self.listeners.spawn(server::serve(
            port.listener,
            service,
            port.options,
            shutdown,
        ));
    }

    /// Lets open requests come to their end, none of which is refused; then drains the node in the
    /// rest of the time.
    pub async fn drain(&self, data: Option<DataPlane>, within: Duration) {
        let deadline = Instant::now() + within;
        self.shutdown.cancel();
        self.listeners.close();
        if let Some(data) = data {
            // A sender that drips its body must not cost the messages in flight their time.
            let _ = tokio::time::timeout(within / 2, self.listeners.wait()).await;
            data.drain(deadline.saturating_duration_since(Instant::now()))
                .await;
        }
        if tokio::time::timeout_at(deadline, self.listeners.wait())
            .await
            .is_err()
        {
            tracing::warn!("requests were still open at the deadline and are cut off");
        }
    }

    /// Closes the log, and the port of metrics last.
    pub async fn close(self) {
        self.log.close().await;
        if let Some(monitoring) = self.monitoring {
            monitoring.stop().await;
        }
    }
}
