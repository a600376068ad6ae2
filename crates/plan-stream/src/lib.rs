//! Agreements of both ends of the plan stream: names and hashes of resources, hashes of sets
//! of them, the chunks of a snapshot, the parts of a lookup table, the bodies of flows and of
//! published APIs, the form in which a plan is saved in the message log, the plan schemas that a
//! build can run, and the times of heartbeats. Also a map of resources, which both ends use. No
//! I/O.

#![warn(missing_docs)]

pub mod body;
pub mod parts;
pub mod plan_schema;
pub mod resource;
pub mod saved;
pub mod set_hash;
pub mod sharded;
pub mod snapshot;

use std::time::Duration;

pub use plan_schema::PlanSchemaRange;
pub use resource::{Hash, Kind};
pub use set_hash::SetHash;
pub use sharded::ShardedMap;

/// The newest plan schema that this build writes and runs:
///
/// - 2 has lookup tables in parts.
/// - 3 has flows that judge answers by `success_when`, mappings that leave items of a list out, and
///   polls that count pages.
/// - 4 has flows and published APIs that read variables of the environment.
pub const PLAN_SCHEMA: u32 = 4;

/// The oldest plan schema that this build runs. Resources that require nothing newer have it.
pub const MIN_PLAN_SCHEMA: u32 = 1;

/// Interval between two heartbeats of each end.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Time without a message after which an end considers the other one gone: three heartbeats.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Size limit of a gRPC message of the stream, in bytes. The control plane stays far below it: it
/// sends a delta with more than 8 MiB of bodies as a snapshot, in chunks.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
