//! Shares of the memory for bodies that wait for their rest, by flow and by peer.
//!
//! Only a body that is not ready when it is polled counts. Most bodies are ready, and cost nothing
//! here.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

use kanat_model::id::FlowId;
use parking_lot::Mutex;

/// Bytes of waiting bodies, by flow and by peer.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Bound for one flow and for one peer, in bytes.
    most: usize,
    taken: Mutex<BytesByHolder>,
}

#[derive(Debug, Default)]
struct BytesByHolder {
    by_flow: HashMap<FlowId, usize>,
    by_peer: HashMap<IpAddr, usize>,
}

/// Flow and peer of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holders<'a> {
    pub flow: &'a FlowId,
    /// Network of the peer; `None` when it is unknown.
    pub peer: Option<IpAddr>,
}

/// Bytes that one body takes of two shares, released on drop.
#[derive(Debug)]
pub(super) struct Share<'a> {
    shares: &'a Shares,
    holders: Holders<'a>,
    bytes: usize,
}

impl Shares {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            taken: Mutex::default(),
        }
    }

    /// Takes `bytes` of both shares; `None` when one of them has less left.
    pub(super) fn take<'a>(&'a self, holders: Holders<'a>, bytes: usize) -> Option<Share<'a>> {
        let mut share = Share {
            shares: self,
            holders,
            bytes: 0,
        };
        share.grow(bytes).then_some(share)
    }
}

impl Share<'_> {
    /// Extends the share to at least `bytes`. Returns `false`, and changes nothing, when so many
    /// are not left.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes) else {
            return true;
        };
        let mut taken = self.shares.taken.lock();
        let of_flow = taken
            .by_flow
            .get(self.holders.flow)
            .copied()
            .unwrap_or_default();
        let of_peer = self
            .holders
            .peer
            .and_then(|peer| taken.by_peer.get(&peer).copied())
            .unwrap_or_default();
        if of_flow.max(of_peer).saturating_add(more) > self.shares.most {
            return false;
        }
        *taken.by_flow.entry(self.holders.flow.clone()).or_default() += more;
        if let Some(peer) = self.holders.peer {
            *taken.by_peer.entry(peer).or_default() += more;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        give_back(&mut taken.by_flow, self.holders.flow, self.bytes);
        if let Some(peer) = &self.holders.peer {
            give_back(&mut taken.by_peer, peer, self.bytes);
        }
    }
}

fn give_back<K: Eq + Hash>(taken: &mut HashMap<K, usize>, holder: &K, bytes: usize) {
    if let Some(of_holder) = taken.get_mut(holder) {
        *of_holder = of_holder.saturating_sub(bytes);
        if *of_holder == 0 {
            taken.remove(holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_and_a_peer_get_a_part_each() {
        let shares = Shares::new(100);
        let flows = ["flw_1", "flw_2", "flw_3"].map(FlowId::from);
        let of = |flow: usize, peer: u8| Holders {
            flow: &flows[flow],
            peer: Some([10, 0, 0, peer].into()),
        };
        let mut first = shares.take(of(0, 1), 60).unwrap();
        assert!(shares.take(of(0, 2), 41).is_none(), "the flow has 40 left");
        assert!(shares.take(of(1, 1), 41).is_none(), "the peer has 40 left");
        assert!(shares.take(of(1, 2), 100).is_some());
        assert!(first.grow(100) && first.grow(60) && !first.grow(101));
        assert!(shares.take(of(0, 3), 1).is_none());
        drop(first);
        assert!(shares.take(of(0, 1), 100).is_some());
        assert!(
            shares
                .take(
                    Holders {
                        flow: &flows[2],
                        peer: None
                    },
                    100
                )
                .is_some()
        );
        assert!(shares.taken.lock().by_flow.is_empty());
        assert!(shares.taken.lock().by_peer.is_empty());
    }
}
