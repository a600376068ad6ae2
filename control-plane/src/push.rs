//! Push: how what the store publishes reaches the nodes that run it, and what is known of those
//! nodes. The stream's rules are those of the node protocol (`proto/kanat/node/v1`); what plans
//! mean is not known here.
//!
//! One [`feed`] per environment follows the store and keeps the current [`set`]; one [`session`]
//! per connected node brings it, environment by environment, from what it holds to that set, as
//! [`peer`] decides. Several control planes may work on one database: [`follow`] hears of what the
//! others publish, and [`others`] of the nodes that they serve.

pub mod asking;
pub mod export;
pub mod feed;
pub mod follow;
pub mod hub;
pub mod nodes;
pub mod others;
pub mod peer;
pub mod refusals;
pub mod remote;
pub mod service;
pub mod session;
pub mod set;
pub mod source;
pub mod written;

pub use asking::Observation;
pub use hub::{Applied, Hub};
pub use nodes::{Node, Version};
pub use service::PlanStreams;

#[cfg(test)]
mod tests;
