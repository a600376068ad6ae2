//! What both ends of the plan stream agree on: how resources are named and hashed, how a set of
//! them is compared, and how a snapshot is cut and put together again, how a lookup table changes
//! by its entries and how a large one is in parts, what of a plan is kept with messages, and which
//! builds can run it. No I/O.

#![warn(missing_docs)]

pub mod parts;
pub mod resource;
pub mod saved;
pub mod schema;
pub mod set_hash;
pub mod sharded;
pub mod snapshot;
pub mod table;

use std::time::Duration;

pub use resource::{Hash, Kind};
pub use schema::Schemas;
pub use set_hash::SetHash;
pub use sharded::Sharded;

/// The highest plan schema that this build writes and runs. 2 has lookup tables in parts.
pub const PLAN_SCHEMA: u32 = 2;

/// The oldest plan schema that this build runs.
pub const MIN_PLAN_SCHEMA: u32 = 1;

/// How often each end says that it is there.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// Silence after which the other end is taken for gone: three heartbeats.
pub const SILENCE: Duration = Duration::from_secs(30);

/// The largest gRPC message of the stream in bytes: a delta that would be longer goes out as a
/// snapshot.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
