//! The traits of a message log, for code that has a concrete one.

pub use crate::{DeliveryStore, MessageLog, MessageReader, PlanStore, PollStore, QuotaStore};
