//! The data plane: takes messages in, runs them through their flows, delivers them. It holds plans
//! in memory and writes only to the message log; configuration and YAML are not known here.
//!
//! A request to a webhook goes through `ingress` into the log and from there through the
//! `pipeline`: the lane of its target, condition and mapping, `delivery`, and its outcome back into
//! the log. [`plans`] says which flows there are.

mod admission;
mod backlog;
mod connector;
mod context;
mod credentials;
mod delivery;
mod error;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod ingress;
mod limit;
mod monitor;
mod node;
mod oauth2;
mod observed;
mod payload;
mod persist;
mod pipeline;
pub mod plans;
mod poll;
mod published;
mod refused;
mod service;
#[cfg(test)]
mod tests;
mod trace_context;
mod work;

pub use backlog::Limits as BacklogLimits;
pub use monitor::Monitor;
pub use node::{DataPlane, Options};
pub use service::Service;
