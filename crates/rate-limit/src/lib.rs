//! Rate limits over several nodes, as decisions on values and instants. The crate does no I/O: it
//! only reads clocks for [`ClusterView`], converts a [`Ledger`] to and from JSON, and logs one that
//! it cannot read.
//!
//! A limit of n calls in a period is a token bucket of n tokens that gains n in a period. The
//! bucket is divided into shares of whole tokens: a node that holds a share of k has a [`Bucket`]
//! of k tokens that gains k in a period. The [`Ledger`] in the store has the share that no node
//! holds (the pool), the shares of the nodes, and the calls of the day. Nodes return and ask for
//! shares in an [`Exchange`]. I/O, tasks and waiting callers are elsewhere: the store in the
//! message log, the callers in the data plane.

mod bucket;
mod cluster;
mod exchange;
mod key;
mod ledger;
mod rate;
mod status;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use bucket::{Bucket, Decision, Limits, Phase, Reservation};
pub use cluster::{ClusterState, ClusterView};
pub use exchange::{Exchange, ExchangeOutcome, MAX_REQUESTS, ShareGrant, ShareRequest};
pub use key::Key;
pub use ledger::{Ledger, Requester};
pub use rate::{Period, Rate};
pub use status::{LimitExceeded, LimitKind, LimitStatus};

/// Number of millionths of a token, in which buckets count, in one token.
pub const MICROTOKENS_PER_TOKEN: u64 = 1_000_000;

/// Lease of a share, counted from the request for it. A holder that does not ask again in that time
/// loses the share.
const SHARE_LEASE: Duration = Duration::from_secs(3);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Returns the capacity of a bucket with this share, in millionths of a token.
fn capacity(share: u32) -> u64 {
    u64::from(share) * MICROTOKENS_PER_TOKEN
}
