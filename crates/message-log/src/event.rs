//! The event stream: every change of a message's state, in one order, under ids that survive a
//! restart.

pub(crate) mod page;

use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::message::Status;

use crate::list::fitting;
use crate::{Message, Tenant};

/// Filter and position of a read of the event stream.
#[derive(Debug, Clone)]
pub struct EventQuery {
    pub tenant: Tenant,
    pub flow_id: Option<FlowId>,
    /// Returns only changes to this status.
    pub status: Option<Status>,
    /// Returns only events after this one.
    pub after: i64,
    pub limit: u32,
}

/// A message in the state after one change.
#[derive(Debug, Clone)]
pub struct Event {
    /// Sequence number, which grows with every event of the log.
    pub seq: i64,
    pub message: Message,
}

/// A page of events.
#[derive(Debug, Clone)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Last event that was read: the next query continues after it, also when nothing matched.
    pub next_after: i64,
    /// There is more to read now; otherwise wait for [`crate::MessageReader::changed`].
    pub more: bool,
}

impl EventPage {
    /// Bytes of payloads and outputs on one page. A page that would have more ends earlier, after
    /// one event at least.
    pub const BYTES: u64 = 1 << 20;

    /// Returns the last event of a page, and whether more of the found events follow. `found` has
    /// sequence numbers and sizes, in any order.
    pub(crate) fn end(mut found: Vec<(i64, u64)>, limit: u32) -> Option<(i64, bool)> {
        found.sort_unstable();
        let fitting = fitting(
            found.iter().map(|(_, bytes)| *bytes),
            Self::BYTES,
            limit.max(1),
        ) as usize;
        let last = found.get(fitting.min(found.len()).checked_sub(1)?)?;
        Some((last.0, fitting < found.len()))
    }
}

impl EventQuery {
    /// Returns a query for all events of an environment after one.
    pub fn after(tenant: Tenant, after: i64) -> Self {
        Self {
            tenant,
            flow_id: None,
            status: None,
            after,
            limit: 100,
        }
    }

    pub fn environment_id(&self) -> &EnvironmentId {
        &self.tenant.environment_id
    }
}
