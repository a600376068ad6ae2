//! A running service: its planes, and the parts that all kinds of processes have.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kanat_control_plane::ControlPlane;
use kanat_data_plane::DataPlane;
use kanat_model::Secret;
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::server::Server;

/// A running service, as `kanat up`, `kanat control-plane` and `kanat data-plane` each are one.
pub struct Service {
    pub server: Server,
    pub control: Option<ControlPlane>,
    pub data: Option<DataPlane>,
    /// Cancelled when the process is not ready any more.
    pub leaving: CancellationToken,
    /// Held until the service has stopped.
    pub _folder: Folder,
}

impl Service {
    /// Returns the URL at which the process is reached from this machine.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The owner's key, when this start made it: to be shown once.
    pub fn new_owner_key(&self) -> Option<&Secret<String>> {
        self.control.as_ref()?.new_owner_key()
    }

    /// Waits until a control plane of another process wishes this one to stop, and gives the time
    /// that it has.
    pub async fn stop_wished(&self) -> Duration {
        let mut requests = match (&self.control, &self.data) {
            (None, Some(data)) => data.drain_requests(),
            (Some(_), _) | (None, None) => return pending().await,
        };
        loop {
            if let Some(within) = *requests.borrow_and_update() {
                return within;
            }
            if requests.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// Says from now on that it is not ready, and serves all the same.
    pub fn leave(&self) {
        self.leaving.cancel();
        if let Some(data) = &self.data {
            data.leave();
        }
    }

    /// Takes nothing more in, finishes what is in flight within the time, and closes.
    pub async fn stop(self, within: Duration) {
        self.server.drain(self.data, within).await;
        if let Some(control) = self.control {
            control.close().await;
        }
        let log = Arc::clone(&self.server.log);
        self.server.close().await;
        let stats = log.stats();
        tracing::info!(
            log.appended = stats.appended,
            log.settled = stats.settled,
            log.operations = stats.operations,
            log.commits = stats.commits,
            "stopped"
        );
    }
}
