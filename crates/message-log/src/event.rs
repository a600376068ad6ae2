//! The live stream: every change of a message's state, in one order, under ids that outlast a restart.

use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::message::Status;

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
    /// Every event up to this one has been looked at: the next query goes on after it, also when nothing matched.
    pub next_after: i64,
    /// There is more to read now; otherwise wait for [`crate::MessageLog::changed`].
    pub more: bool,
}

impl EventQuery {
    /// Everything of an environment after an event.
    pub fn after(tenant: Tenant, after: i64) -> Self {
        Self { tenant, flow_id: None, status: None, after, limit: 100 }
    }

    pub fn environment_id(&self) -> &EnvironmentId {
        &self.tenant.environment_id
    }
}
