//! The data plane accepts messages, runs them through their flows and delivers them. It holds plans
//! in memory and writes only to the message log. It knows neither configuration nor YAML.
//!
//! A webhook request goes through `ingress` into the log and from there through the `pipeline`: the
//! lane of its target, condition and mapping, `delivery`, and its outcome back into the log.
//! [`plans`] holds the flows.

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
mod refusal_log;
mod service;
#[cfg(test)]
mod tests;
mod trace_context;
mod work;

pub use backlog::Limits as BacklogLimits;
pub use monitor::Monitor;
pub use node::{DataPlane, Options};
pub use service::Service;
