//! Work that comes due on a clock of the control plane's own. Of several control planes on one
//! database, one does it.

pub mod audit;
pub mod batch_jobs;
mod due;
pub mod lease;
pub mod leftovers;
pub mod oauth_refresh;
pub mod observations;
mod periodic;
pub mod schedule_outcomes;
pub mod schedules;
pub mod secrets_of_flows;
