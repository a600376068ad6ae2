//! Where connections come in: those that there are places for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::Options;
use super::places::{Place, Places};
use super::repeats::Repeats;

/// Where connections come in.
pub(super) struct Door {
    listener: TcpListener,
    options: Arc<Options>,
    /// Connections that could not be accepted.
    failures: Repeats,
    /// Connections of peers that have as many as they may.
    crowds: Repeats,
}

impl Door {
    pub fn new(listener: TcpListener, options: Arc<Options>) -> Self {
        Self {
            listener,
            options,
            failures: Repeats::default(),
            crowds: Repeats::default(),
        }
    }

    /// Waits for a connection that there is a place for; none at `shutdown`.
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
                    // Out of descriptors: give those that are open time to close.
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
