//! Resources that peers hold in one process: connections, and bytes of answers that they have not
//! read.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::peer::network;

/// Number of networks from which unused ones are forgotten.
const FIRST_PRUNE: usize = 1024;

/// Holdings of each network of peers.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<Networks>);

#[derive(Debug, Default)]
struct Networks {
    holdings: HashMap<IpAddr, Arc<Holdings>>,
    prune_at: usize,
}

/// Holdings of one network.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    connections: AtomicUsize,
    /// Bytes of answers that wait for their readers.
    pub answers: AtomicUsize,
}

/// Connection that counts for its network until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection(Arc<Holdings>);

impl Peers {
    /// Returns the holdings of the network of `address`.
    pub fn of(&self, address: IpAddr) -> Arc<Holdings> {
        let mut networks = self.0.lock();
        if networks.holdings.len() >= networks.prune_at {
            networks
                .holdings
                .retain(|_, holdings| Arc::strong_count(holdings) > 1);
            networks.prune_at = FIRST_PRUNE.max(2 * networks.holdings.len());
        }
        Arc::clone(networks.holdings.entry(network(address)).or_default())
    }
}

impl Holdings {
    /// Counts a further connection; `None` when there are `most` already.
    pub fn connect(self: &Arc<Self>, most: usize) -> Option<Connection> {
        let more = |connections| (connections < most).then_some(connections + 1);
        self.connections
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()?;
        Some(Connection(Arc::clone(self)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_connections_of_each_network() {
        let peers = Peers::default();
        let connect = |address: &str| peers.of(address.parse().unwrap()).connect(2);
        let held = [
            connect("198.51.100.1"),
            connect("198.51.100.1"),
            connect("198.51.100.2"),
        ];
        assert!(held.iter().all(Option::is_some));
        assert!(connect("198.51.100.1").is_none());
        drop(held);
        assert!(connect("198.51.100.1").is_some());
        let held = [connect("2001:db8::1"), connect("2001:db8::2")];
        assert!(held.iter().all(Option::is_some));
        assert!(connect("2001:db8::3").is_none());
        assert!(connect("2001:db8:0:1::3").is_some());
    }

    #[test]
    fn forgets_networks_that_hold_nothing() {
        let peers = Peers::default();
        let held = peers.of([10, 0, 0, 1].into()).connect(1);
        for n in 0..10_000_u32 {
            peers.of(IpAddr::V4((0x0b00_0000 + n).into()));
        }
        assert!(peers.0.lock().holdings.len() <= FIRST_PRUNE);
        assert!(peers.of([10, 0, 0, 1].into()).connect(1).is_none());
        drop(held);
    }
}
