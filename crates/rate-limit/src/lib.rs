//! Rate limits over several nodes, as decisions on values and instants. The crate does no I/O: it
//! only reads clocks for [`ClusterView`], converts a [`Ledger`] to and from JSON, and logs one that
//! it cannot read.
//!
//! A limit of n calls in a period is a token bucket of n tokens that gains n in a period. The
//! bucket is divided into shares of whole tokens: a node that holds a share of k has a [`Bucket`]
//! of k tokens that gains k in a period, and the [`Ledger`] in the store keeps what no node holds,
//! by the same rule. Nodes return and ask for shares in an [`Exchange`]. I/O, tasks and waiting
//! callers are elsewhere: the store in the message log, the callers in the data plane.

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

/// One token in the unit in which tokens are counted, which is a millionth.
pub const MICROTOKENS_PER_TOKEN: u64 = 1_000_000;

/// Time for which a share belongs to its holder after it was asked for. A holder that is silent for
/// longer loses it.
const SHARE_LEASE: Duration = Duration::from_secs(3);

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Returns the tokens of a full bucket with this share.
fn capacity(share: u32) -> u64 {
    u64::from(share) * MICROTOKENS_PER_TOKEN
}
