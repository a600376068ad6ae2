//! What a node knows of the world beyond it, and what that is worth at an instant.

use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::Instant;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What is known beyond this node.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    /// 1 as long as nobody has said.
    pub nodes: u32,
    /// The store's clock, not before which it was at an instant of ours.
    pub clock: Option<(Timestamp, Instant)>,
    pub away: Option<Instant>,
}

/// What the node knows of the world at an instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub now: Instant,
    /// The wall clock, for the record alone.
    pub wall: Timestamp,
    /// The day by the store's clock, counted from 1970, and how long it lasts.
    pub today: i64,
    pub to_midnight: Duration,
    /// Nodes that share what there is.
    pub nodes: u32,
    /// The store has said how many these are. A node that was never told has no part of its own.
    pub heard: bool,
    /// Since when the store cannot be reached.
    pub away: Option<Instant>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            nodes: 1,
            clock: None,
            away: None,
        }
    }
}

impl World {
    pub fn view(&self, now: Instant) -> View {
        let wall = Timestamp::now();
        let store = self.clock.map_or(wall, |(store, at)| {
            store.after(now.saturating_duration_since(at))
        });
        let today = store.as_millis().div_euclid(DAY_MS);
        let into = store.as_millis().rem_euclid(DAY_MS);
        let to_midnight = Duration::from_millis(u64::try_from(DAY_MS - into).unwrap_or(0));
        let nodes = self.nodes;
        let heard = self.clock.is_some();
        let away = self.away;
        View {
            now,
            wall,
            today,
            to_midnight,
            nodes,
            heard,
            away,
        }
    }
}

impl View {
    /// Of one that shares with nobody, and never did since `begun`.
    pub fn alone(begun: Instant) -> Self {
        let clock = Some((Timestamp::now(), Instant::now()));
        World {
            nodes: 1,
            clock,
            away: Some(begun),
        }
        .view(Instant::now())
    }
}
