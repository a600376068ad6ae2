//! What all nodes together know of the limits of consumer keys and of connectors: how much of a
//! key's bucket each of them holds, how much of a day's limit is spent, and how often the key was
//! used. How the limits hold is in [`ledger`].

mod key;
pub mod ledger;
mod rate;

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, ConsumerKeyId, NodeId};

use crate::Error;

pub use key::Key;
pub use rate::{Period, Rate};

/// Tokens are counted in millionths.
pub const TOKEN: u64 = 1_000_000;

/// A share of a bucket is its holder's for so long after it was asked for; a holder that is silent
/// loses it.
pub const LEASE: Duration = Duration::from_secs(3);

/// A connector that nobody called for so long has a full bucket, whatever its rate, and need not be
/// remembered.
pub(crate) const CONNECTORS_KEPT: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// Most keys of one exchange: it is one transaction, and messages are not to wait for a long one.
pub const MOST_ASKS: usize = 500;

/// Limits of keys, as far as nodes have to agree on them.
#[async_trait::async_trait]
pub trait Quotas: Send + Sync {
    /// Whether other processes may use the same log. One that is alone need not ask it.
    fn is_shared(&self) -> bool;

    /// Takes back what a node no longer needs, gives what it asks for as far as it is there, and
    /// adds up what was used: all of it or nothing. One without asks only tells how many nodes
    /// there are.
    async fn exchange(&self, exchange: &Exchange) -> Result<Exchanged, Error>;

    /// How often these consumer keys were used; those that never were are left out.
    async fn key_usage(&self, keys: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>, Error>;
}

/// What a node gives back and asks for, for many keys at once.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub node: NodeId,
    /// Shares belong to one boot of a node: they end when another boot of it asks for the same key.
    pub owner: BootId,
    /// How long ago the boot began: by then every earlier one had ended.
    pub boot_age: Duration,
    /// Grows with every exchange of the owner. One whose outcome is not known is sent again under
    /// the same number.
    pub turn: i64,
    /// At most [`MOST_ASKS`], each of another key.
    pub asks: Vec<Ask>,
}

/// What a node gives back and asks for of one key.
#[derive(Debug, Clone)]
pub struct Ask {
    pub key: Key,
    /// How the bucket is filled, which is also its size.
    pub rate: Rate,
    /// Calls per UTC day; 0 for no limit.
    pub per_day: u64,
    /// Calls that wait to be let in, and how many of them bring a token of the node's own.
    pub calls: u32,
    pub own: u32,
    /// The share of the bucket that the node still holds, and the tokens that it gives back with
    /// the rest, in millionths.
    pub held: u32,
    pub tokens_back: u64,
    /// The share that the node would like when others are there; alone it is given all. `None`
    /// gives up what it holds.
    pub wanted: Option<u32>,
    /// The day of the allowance, counted from 1970, of which `day_back` calls are given back and
    /// `day_owed` were let in beyond it, while the store was away.
    pub day: i64,
    pub day_back: u64,
    pub day_owed: u64,
    /// The allowance that the node would like beforehand.
    pub day_wanted: u64,
    /// Calls let in that were not told of yet, and when the last of them was.
    pub used: u64,
    pub last_used_at: Option<Timestamp>,
}

impl Ask {
    /// Asks nothing of a key.
    pub fn new(key: impl Into<Key>, rate: Rate, per_day: u64) -> Self {
        Self {
            key: key.into(),
            rate,
            per_day,
            calls: 0,
            own: 0,
            held: 0,
            tokens_back: 0,
            wanted: None,
            day: 0,
            day_back: 0,
            day_owed: 0,
            day_wanted: 0,
            used: 0,
            last_used_at: None,
        }
    }
}

/// What became of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchanged {
    Done {
        /// By the store's clock.
        now: Timestamp,
        /// Nodes that live, at least 1.
        nodes: u32,
        /// One for each ask, in the same order.
        gains: Vec<Gain>,
    },
    /// It had taken effect before; what it gave is not known any more, and returns when its lease
    /// has run out.
    Repeated,
}

/// What a node got of one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gain {
    /// Of the calls that wait, so many may go.
    pub admitted: u32,
    /// The share that the node holds now, and the tokens that came with what was added, in
    /// millionths.
    pub share: u32,
    pub tokens: u64,
    /// What it should hold; when that is less, it is to give the rest back.
    pub target: u32,
    /// The day, counted from 1970.
    pub day: i64,
    /// Calls of that day that the node may let in without asking.
    pub allowance: u64,
    /// Calls of that day that are left to all.
    pub day_left: u64,
    /// Tokens that are left to all, in millionths, and when there will be a whole one; `None` when
    /// none will come.
    pub pool: u64,
    pub next_token: Option<Duration>,
}

/// How often a key was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUsage {
    pub key: ConsumerKeyId,
    pub request_count: u64,
    pub last_used_at: Timestamp,
}
