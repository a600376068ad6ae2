//! Acceptance of connections, as far as there are places for them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kanat_telemetry::Throttle;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::Options;
use super::places::{Place, Places};

/// Acceptor of connections.
pub(super) struct Acceptor {
    listener: TcpListener,
    options: Arc<Options>,
    /// Throttled log lines of failed accepts.
    failures: Throttle,
    /// Throttled log lines of peers that have their maximum number of connections.
    crowds: Throttle,
}

impl Acceptor {
    pub fn new(listener: TcpListener, options: Arc<Options>) -> Self {
        Self {
            listener,
            options,
            failures: Throttle::default(),
            crowds: Throttle::default(),
        }
    }

    /// Waits for a connection and a place for it; `None` at `shutdown`.
    pub async fn next(
        &mut self,
        shutdown: &CancellationToken,
    ) -> Option<(TcpStream, SocketAddr, Place)> {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            accepted = self.accept() => accepted,
        }
    }

    async fn accept(&mut self) -> Option<(TcpStream, SocketAddr, Place)> {
        let places = &self.options.places;
        let mut free = places.free().await?;
        loop {
            let (stream, address) = match self.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    if let Some(count) = self.failures.count() {
                        tracing::warn!(%error, count, "cannot accept a connection");
                    }
                    // The process is out of descriptors: open connections get time to close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            if self.options.trusted_proxies.contains(address.ip()) {
                return Some((stream, address, Places::give_proxy(free)));
            }
            match places.give(free, address.ip()) {
                Ok(place) => return Some((stream, address, place)),
                Err(back) => {
                    free = back;
                    if let Some(count) = self.crowds.count() {
                        let peer = address.ip();
                        tracing::warn!(
                            %peer,
                            count,
                            "closed a connection: its peer has as many as one may have",
                        );
                    }
                }
            }
        }
    }
}
