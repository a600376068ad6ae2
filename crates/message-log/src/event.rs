//! The live stream: every change of a message's state, in one order, under ids that outlast a
//! restart.

use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::message::Status;

use crate::list::fitting;
use crate::{Message, Tenant};

/// Which events to read.
#[derive(Debug, Clone)]
pub struct EventQuery {
    pub tenant: Tenant,
    pub flow_id: Option<FlowId>,
    /// Only changes to this status.
    pub status: Option<Status>,
    /// Only events later than this one.
    pub after: i64,
    pub limit: u32,
}

/// A message as it stood after one change.
#[derive(Debug, Clone)]
pub struct Event {
    /// Grows with every event of the log.
    pub seq: i64,
    pub message: Message,
}

/// Some events, and where to read on.
#[derive(Debug, Clone)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Every event up to this one has been looked at: the next query goes on after it, also when
    /// nothing matched.
    pub next_after: i64,
    /// There is more to read now; otherwise wait for [`crate::MessageLog::changed`].
    pub more: bool,
}

impl EventPage {
    /// Bytes of payloads and outputs on one page. A page that would have more ends earlier, after
    /// one event at least.
    pub const BYTES: u64 = 1 << 20;

    /// Returns the place of the last event of a page, and whether the page has to be cut behind it.
    /// `found` are the places of at least one event, in any order, each with its bytes.
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
    /// Everything of an environment after an event.
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
