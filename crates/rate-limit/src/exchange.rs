//! Exchanges of a node with the store: requests for keys, and the grants.
//!
//! The node's own tokens (`own_tokens`) pay for waiting calls first. When they are used up, tokens
//! of the pool pay. In either case a call counts as one call of the day. `Bucket::request` takes
//! the own tokens out of the bucket. `Ledger::exchange` takes the others out of the pool, and the
//! calls out of the day. `Bucket::apply` takes back own tokens that the grant did not use, and
//! `Bucket::cancel_admissions` the tokens of calls whose callers have gone.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};

use crate::{Key, Rate};

/// Most keys of one exchange. An exchange is one transaction, and messages must not wait for a long
/// one.
pub const MAX_REQUESTS: usize = 500;

/// Requests of a node for many keys.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub node: NodeId,
    /// Owner of the shares: one rate limiter, which is new at each boot of its node. Its shares end
    /// when a later owner of the node asks for the same key.
    pub owner: BootId,
    /// Time since the owner was created. When it was created, all earlier owners of the node had
    /// ended.
    pub owner_age: Duration,
    /// Number of the exchange, which grows with every exchange of the owner. An exchange whose
    /// outcome is not known is sent again under the same number.
    pub number: i64,
    /// At most [`MAX_REQUESTS`], each for another key.
    pub requests: Vec<ShareRequest>,
}

/// A request of a node for one key: what it returns and what it asks for.
#[derive(Debug, Clone)]
pub struct ShareRequest {
    pub key: Key,
    /// Rate at which the bucket is refilled; its calls per period are also the bucket's size.
    pub rate: Rate,
    /// Calls per UTC day; 0 for no limit.
    pub per_day: u64,
    /// Calls that wait to be admitted.
    pub waiting_calls: u32,
    /// Whole tokens of the node's own share that pay for some of `waiting_calls`.
    pub own_tokens: u32,
    /// Share of the bucket that the node still holds.
    pub held: u32,
    /// Tokens that the node returns with the part of its share beyond `held`, in millionths.
    pub returned_microtokens: u64,
    /// Share that the node asks for; `None` to return the whole share. The store gives a single
    /// node the whole bucket, whatever it asks for.
    pub wanted: Option<u32>,
    /// Day of the allowance, in days since 1970.
    pub day: i64,
    /// Calls of the allowance that the node returns.
    pub day_returned: u64,
    /// Calls of `day` that were admitted beyond the allowance while the store was unreachable. The
    /// exchange counts them in the ledger, or drops them if `day` has ended.
    pub day_owed: u64,
    /// Allowance that the node asks for in advance.
    pub day_wanted: u64,
    /// Admitted calls that were not reported yet.
    pub used: u64,
    /// Instant of the last admitted call.
    pub last_used_at: Option<Timestamp>,
}

impl ShareRequest {
    /// Returns a request that returns nothing and asks for nothing.
    pub fn new(key: impl Into<Key>, rate: Rate, per_day: u64) -> Self {
        Self {
            key: key.into(),
            rate,
            per_day,
            waiting_calls: 0,
            own_tokens: 0,
            held: 0,
            returned_microtokens: 0,
            wanted: None,
            day: 0,
            day_returned: 0,
            day_owed: 0,
            day_wanted: 0,
            used: 0,
            last_used_at: None,
        }
    }
}

/// Outcome of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeOutcome {
    Done {
        /// Time by the clock of the store.
        now: Timestamp,
        /// Number of live nodes, at least 1.
        nodes: u32,
        /// Grants in the order of the requests.
        grants: Vec<ShareGrant>,
    },
    /// The exchange had taken effect before. Its grants are not known any more; they return to the
    /// store when their leases end.
    Repeated,
}

/// Grant to a node for one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShareGrant {
    /// Waiting calls that are admitted.
    pub admitted: u32,
    /// Share that the node holds now.
    pub share: u32,
    /// Tokens that came with the added share, in millionths.
    pub microtokens: u64,
    /// Share that the node should hold. The node returns what it holds beyond it.
    pub target: u32,
    /// Day of the allowance, in days since 1970.
    pub day: i64,
    /// Calls of that day that the node may admit without a request.
    pub allowance: u64,
    /// Calls of that day that are granted to no node.
    pub day_left: u64,
    /// Tokens of the pool, in millionths.
    pub pool_microtokens: u64,
    /// Time until the pool has a whole token; `None` when it gains none.
    pub time_to_next_token: Option<Duration>,
}
