//! A running process without its planes: message log, listeners and metrics.

use std::sync::Arc;
use std::time::Duration;

use kanat_data_plane::DataPlane;
use kanat_message_log::MessageLog;
use tokio::time::{Instant, timeout, timeout_at};

use super::listener::Port;
use super::ports::Ports;
use crate::monitoring::{self, Monitoring};

/// Message log, listeners and metrics of a process.
pub struct Server {
    /// URL of the process from this machine.
    pub url: String,
    pub log: Arc<dyn MessageLog>,
    pub ports: Ports,
    monitoring: Option<Ports>,
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
            monitoring::serve(port, Monitoring { log, control, data })
        });
        Self {
            url,
            log,
            ports: Ports::default(),
            monitoring,
        }
    }

    /// Lets open requests come to their end, none of which is refused; then drains the node in the
    /// rest of the time.
    pub async fn drain(&self, data: Option<DataPlane>, within: Duration) {
        let deadline = Instant::now() + within;
        if let Some(data) = data {
            // A sender that drips its body must not cost the messages in flight their time.
            let _ = timeout(within / 2, self.ports.stop()).await;
            data.drain(deadline.saturating_duration_since(Instant::now()))
                .await;
        }
        if timeout_at(deadline, self.ports.stop()).await.is_err() {
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
