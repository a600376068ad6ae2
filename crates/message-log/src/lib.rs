//! The message log: what was accepted, what became of it, and who may work on it now. A trait, its
//! implementations on SQLite and PostgreSQL, and the suite that both pass. It knows nothing of
//! flows beyond their ids.
//!
//! The happy path is two grouped writes and no read: [`MessageLog::append`] inserts the message
//! already leased to the node that received it, [`MessageLog::settle`] writes what became of it.
//! Everything else (retries that are due, messages of a node that died, messages behind an ordering
//! key or a paused flow) is found with [`MessageLog::waiting`] and taken with
//! [`MessageLog::claim`]. What was over before it could be stored comes in by
//! [`MessageLog::append_tried`], many messages in one write.
//!
//! Operations that have not been answered yet have no order among each other, except that appends
//! with one ordering key, or with one key of repeats, keep theirs.

pub mod append;
pub mod backlog;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod error;
pub mod event;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod key;
pub mod lease;
pub mod list;
mod log;
pub mod message;
pub mod plan;
pub mod poll;
pub mod postgres;
pub mod quota;
pub mod settle;
pub mod sqlite;
pub mod trace;
pub mod tried;
mod walk;

pub use append::{Appended, Dedupe, NewMessage, Place};
pub use backlog::Backlog;
pub use error::Error;
pub use event::{Event, EventPage, EventQuery};
pub use kanat_model::trace::TraceRecord;
pub use lease::{Awaited, Claim, Claimed, Lease, NodeLease, Renewed, Room, Share, Step, Waiting};
pub use list::{Cursor, EnvironmentFilter, Filter, MessagePage, Position};
pub use log::{MessageLog, Stats};
pub use message::{Content, Message, Tenant};
pub use plan::{FlowEnd, SavedPlan};
pub use poll::{Poll, PollClaim, PollClaimed, PollEnded, PollStanding, SeenRecord};
pub use quota::{Ask, Exchange, Exchanged, Gain, KeyUsage, Quotas};
pub use settle::{Outcome, Settled, Settlement, StepCheckpoint};
pub use tried::Tried;
