//! The node as a whole: a real log, real sockets to a real HTTP target, plans by the real stream.

mod bounds;
mod control;
mod delivery;
mod faults;
mod held;
mod ingress;
mod lanes;
mod node;
mod polls;
mod property;
mod published;
mod restored;
mod steps;
pub(crate) mod target;
