//! The state of the other nodes and the store, as one node knows it.

use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::Instant;

use crate::DAY_MS;

/// State of the other nodes and the store.
#[derive(Debug, Clone, Copy)]
pub struct ClusterState {
    /// Number of live nodes; 1 until the store has answered.
    pub nodes: u32,
    /// A reading of the store's clock, and the instant of this node just before it.
    pub clock: Option<(Timestamp, Instant)>,
    /// Instant since which the store cannot be reached.
    pub unreachable_since: Option<Instant>,
}

/// State of the other nodes and the store at an instant.
#[derive(Debug, Clone, Copy)]
pub struct ClusterView {
    pub now: Instant,
    /// Wall clock, for usage records only.
    pub wall: Timestamp,
    /// Day by the store's clock, counted from 1970.
    pub today: i64,
    /// Time until the day ends.
    pub to_midnight: Duration,
    /// Nodes that share the limits.
    pub nodes: u32,
    /// True once the store has answered, so that the number of nodes is known. A node that has
    /// never reached the store admits no call of a limited key while the store is unreachable.
    pub has_store_answered: bool,
    /// Instant since which the store cannot be reached.
    pub unreachable_since: Option<Instant>,
}

impl Default for ClusterState {
    fn default() -> Self {
        Self {
            nodes: 1,
            clock: None,
            unreachable_since: None,
        }
    }
}

impl ClusterState {
    pub fn view(&self, now: Instant) -> ClusterView {
        let wall = Timestamp::now();
        let store = self.clock.map_or(wall, |(store, at)| {
            store.after(now.saturating_duration_since(at))
        });
        let today = store.as_millis().div_euclid(DAY_MS);
        let into = store.as_millis().rem_euclid(DAY_MS);
        let to_midnight = Duration::from_millis(u64::try_from(DAY_MS - into).unwrap_or(0));
        ClusterView {
            now,
            wall,
            today,
            to_midnight,
            nodes: self.nodes,
            has_store_answered: self.clock.is_some(),
            unreachable_since: self.unreachable_since,
        }
    }
}

impl ClusterView {
    /// Returns the view for a key that this node limits alone since `since`. It is modelled as a
    /// single node whose store cannot be reached. In that state a bucket without a share refills
    /// with the whole limit, and never asks the store.
    pub fn local(since: Instant) -> Self {
        let now = Instant::now();
        ClusterState {
            nodes: 1,
            clock: Some((Timestamp::now(), now)),
            unreachable_since: Some(since),
        }
        .view(now)
    }
}
