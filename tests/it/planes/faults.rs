//! Faults that are caused on purpose: at each step of a message's life, at random, and at every
//! target. The counts are printed. `cargo xtask soak` runs the same tests for longer.

mod database;
mod deploys;
mod failover;
mod kept;
mod lagging;
mod live;
mod nodes;
mod points;
mod power_loss;
mod refused_plan;
mod restore;
mod restored_log;
mod senders;
mod steps;
mod store_read;
mod targets;
mod tls;
mod versions;
