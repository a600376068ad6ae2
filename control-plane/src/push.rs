//! Push: brings the published resources of the store to the nodes that run them, and knows the
//! state of those nodes. The rules of the stream are those of the node protocol
//! (`proto/kanat/node/v1`). Of a plan only its kind and plan schema are known here, and not its
//! content.
//!
//! One [`feed`] per environment follows the store and keeps the current [`set`]; one [`session`]
//! per connected node brings it, environment by environment, to that set, as [`environment_sync`]
//! decides. Several control planes may work on one database: `follow` finds the changes of the
//! others, and [`peer_nodes`] has the nodes that they serve. The rest of the control plane uses the
//! [`hub`].
//!
//! | word | meaning |
//! | --- | --- |
//! | nack | message of a node that refuses resources, or a whole set |
//! | refusal | part of a nack: the node cannot run this content of a resource |
//! | withheld | not sent in deltas if the build refused it; never if the build lacks its schema |
//! | deviation | resource of which the node runs another content than its set has, or none |
//! | rejection | on the wire a refusal; in the state of a node a deviation with its reason |

mod context;
pub mod environment_sync;
pub mod export;
pub mod feed;
mod follow;
mod grant;
pub mod hub;
mod node_record;
pub mod nodes;
mod observations;
pub mod peer_nodes;
pub mod refusals;
pub mod remote;
pub mod service;
pub mod session;
pub mod set;
pub mod source;

pub use hub::{Hub, Rollout};
pub use nodes::{Node, SetVersion};
pub use observations::Observation;
pub use service::PlanStreamService;

#[cfg(test)]
mod tests;
