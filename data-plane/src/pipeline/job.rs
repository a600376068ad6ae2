//! A message that this node holds, and the right to work on it.

use std::sync::Arc;

use kanat_message_log::{Lease, Outcome, Settlement};
use kanat_model::Timestamp;

use super::lane::Slot;
use super::lease::Hold;
use super::tally::Tally;
use crate::delivery::Attempt;
use crate::plans::Runnable;
use crate::work::Work;

pub(crate) struct Job {
    pub lease: Lease,
    pub hold: Arc<Hold>,
    /// Its place in the target's lane, kept until the outcome is durable.
    pub slot: Slot<Box<Job>>,
    pub runnable: Runnable,
    pub work: Work,
}

/// A job that has ended but for its entry in the log.
pub(super) struct Ended {
    pub settlement: Settlement,
    pub hold: Arc<Hold>,
    pub slot: Option<Slot<Box<Job>>>,
    /// Where it is counted; what is given back is not.
    pub tally: Option<Tally>,
}

impl Job {
    pub(super) fn ended(self: Box<Self>, attempt: Attempt) -> Ended {
        let tally = Some(Tally::new(&self.runnable.flow.counts, self.work.received_at));
        Ended { settlement: attempt.settlement(self.lease), hold: self.hold, slot: Some(self.slot), tally }
    }

    pub(super) fn given_back(self: Box<Self>, due: Timestamp) -> Ended {
        Ended { settlement: release(self.lease, due), hold: self.hold, slot: Some(self.slot), tally: None }
    }
}

impl Ended {
    /// A message that found no place, given back; it counts as no attempt.
    pub(super) fn undone(lease: Lease, hold: &Arc<Hold>, due: Timestamp) -> Self {
        Self { settlement: release(lease, due), hold: Arc::clone(hold), slot: None, tally: None }
    }
}

fn release(lease: Lease, due: Timestamp) -> Settlement {
    Settlement {
        lease,
        at: Timestamp::now(),
        attempt: 0,
        outcome: Outcome::Release { due },
        output: None,
        failure: None,
        trace: Vec::new(),
    }
}
