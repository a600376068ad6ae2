//! Ports that are served until they are stopped.

use std::convert::Infallible;

use http::{Request, Response};
use kanat_net::{Body, Inbound, server};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::Port;

/// Ports that are served.
#[derive(Default)]
pub struct Ports {
    /// Cancelled when nothing more is accepted.
    pub shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Ports {
    /// Serves a port, until all are stopped.
    pub fn serve<S>(&self, port: Port, service: S)
    where
        S: tower::Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let shutdown = self.shutdown.clone();
        let served = server::serve(port.listener, service, port.options, shutdown);
        self.tasks.spawn(served);
    }

    /// Accepts nothing more from now on, and waits until the last connection is closed.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
