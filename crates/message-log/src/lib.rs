//! The message log: accepted messages, their outcomes, and the nodes that hold them. It has traits,
//! implementations on SQLite and PostgreSQL, and the suite that both pass. It knows nothing of
//! flows beyond their ids.
//!
//! The happy path is two grouped writes and no read: [`DeliveryStore::append`] inserts the message
//! already leased to the node that received it, [`DeliveryStore::settle`] writes the outcome. All
//! other messages (due retries, messages of a dead node, messages that wait for an ordering key or
//! a paused flow) are found with [`DeliveryStore::waiting`] and taken with
//! [`DeliveryStore::claim`]. Messages whose first attempt has ended before they are stored are
//! appended with [`DeliveryStore::append_attempted`], many in one write.
//!
//! Concurrent operations have no order. Appends with the same ordering key or deduplication key
//! keep theirs.

pub mod append;
pub mod attempted;
pub mod backlog;
mod change;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod dialect;
mod effect;
pub mod error;
pub mod event;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod key;
pub mod lease;
pub mod list;
mod log;
pub mod message;
mod operator_decision;
pub mod plan;
pub mod poll;
pub mod postgres;
pub mod prelude;
pub mod quota;
mod row;
pub mod settle;
pub mod sqlite;
pub mod trace;
mod walk;

pub use append::{AppendOutcome, DedupeKey, NewMessage, Placement, RepeatPolicy};
pub use attempted::AttemptedMessage;
pub use backlog::Backlog;
pub use error::{Error, Result};
pub use event::{Event, EventPage, EventQuery};
pub use kanat_model::trace::TraceRecord;
pub use lease::{
    AwaitedMessages, Claim, ClaimBudget, ClaimedMessage, Lease, LeasedWriteOutcome, NodeLease,
    RenewalOutcome, Room, Step, Waiting,
};
pub use list::{Cursor, EnvironmentFilter, Filter, MessagePage, Position};
pub use log::{DeliveryStore, MessageLog, MessageReader, Stats};
pub use message::{Content, Message, Tenant};
pub use operator_decision::RetryVersion;
pub use plan::{FlowEnd, PlanStore, SavedPlan};
pub use poll::{
    Poll, PollClaim, PollClaimOutcome, PollCycleEnd, PollStanding, PollStore, SeenRecord,
};
pub use quota::{KeyUsage, QuotaStore};
pub use settle::{Outcome, Settlement, StepCheckpoint};
