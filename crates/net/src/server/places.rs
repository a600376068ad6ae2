//! Places for connections: a bound on the connections of a process, tied to its limit of open
//! files, and one on those of a peer.

use std::net::IpAddr;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::peers::{self, Holdings, Peers};

/// Maximum number of connections of a process without a limit of open files.
const MAX_CONNECTIONS: usize = 10_000;

/// Number of files reserved for other purposes: databases, calls to targets, child processes.
const RESERVED_FILES: usize = 128;

/// Minimum number of connections of one peer, if there are places for twice as many.
const MIN_PER_PEER: usize = 256;

/// Places for the connections of one listener, or of several that share them.
#[derive(Debug, Clone)]
pub struct Places {
    room: Arc<Semaphore>,
    of_a_peer: usize,
    pub(super) peers: Arc<Peers>,
}

/// Place of one connection.
#[derive(Debug)]
pub(super) struct Place {
    pub holdings: Option<Arc<Holdings>>,
    _permit: OwnedSemaphorePermit,
    _connection: Option<peers::Connection>,
}

impl Places {
    /// Makes `all` places, of which a peer gets at most `of_a_peer`.
    pub fn new(all: usize, of_a_peer: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(all)),
            of_a_peer,
            peers: Arc::default(),
        }
    }

    /// Makes the places that the limit of open files leaves: three quarters of it less 128, at most
    /// 10,000. A peer gets a quarter of them.
    pub fn within_file_limit() -> Self {
        let limit = getrlimit(Resource::Nofile)
            .current
            .and_then(|limit| usize::try_from(limit).ok());
        let all = places(limit);
        Self::new(all, of_a_peer(all))
    }

    /// Waits until a place is free.
    pub(super) async fn free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// Gives the place to a peer, unless the peer has its maximum.
    pub(super) fn give(
        &self,
        permit: OwnedSemaphorePermit,
        peer: IpAddr,
    ) -> Result<Place, OwnedSemaphorePermit> {
        let holdings = self.peers.of(peer);
        match holdings.connect(self.of_a_peer) {
            Some(connection) => Ok(Place {
                holdings: Some(holdings),
                _permit: permit,
                _connection: Some(connection),
            }),
            None => Err(permit),
        }
    }

    /// Gives the place to a trusted proxy, which has connections of many clients.
    pub(super) fn give_proxy(permit: OwnedSemaphorePermit) -> Place {
        Place {
            holdings: None,
            _permit: permit,
            _connection: None,
        }
    }
}

fn places(file_limit: Option<usize>) -> usize {
    let Some(limit) = file_limit else {
        return MAX_CONNECTIONS;
    };
    let others = RESERVED_FILES.max(limit / 4);
    limit
        .saturating_sub(others)
        .max(limit / 4)
        .clamp(1, MAX_CONNECTIONS)
}

fn of_a_peer(places: usize) -> usize {
    (places / 4).max(MIN_PER_PEER.min(places / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_things_than_connections_have_files_left() {
        assert_eq!(places(None), 10_000);
        assert_eq!(places(Some(65_536)), 10_000);
        assert_eq!(places(Some(1_024)), 768);
        assert_eq!(places(Some(256)), 128);
        assert_eq!(places(Some(64)), 16);
        assert_eq!(places(Some(1)), 1);
    }

    #[test]
    fn a_peer_gets_a_quarter_and_a_few_hundred_at_least() {
        assert_eq!(of_a_peer(10_000), 2_500);
        assert_eq!(of_a_peer(768), 256);
        assert_eq!(of_a_peer(128), 64);
        assert_eq!(of_a_peer(1), 1);
    }
}
