//! A message that this node holds, and the right to work on it.

use std::sync::Arc;

use kanat_message_log::{Lease, Outcome, Settlement, TraceRecord};
use kanat_model::Timestamp;
use kanat_model::message::Failure;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::lane::Slot;
use super::lease::Hold;
use super::tally::Tally;
use crate::backlog::Backlog;
use crate::delivery::{Answered, Attempt};
use crate::plans::Runnable;
use crate::plans::published::Answering;
use crate::work::Work;

pub(crate) struct Job {
    pub lease: Lease,
    pub hold: Arc<Hold>,
    /// Its place in the target's lane, kept until the outcome is durable.
    pub slot: Slot<Box<Job>>,
    pub runnable: Runnable,
    pub work: Work,
    /// The caller who waits for the end of this attempt, where there is one.
    pub reply: Option<Reply>,
}

/// Who waits for what a run comes to.
pub(crate) struct Reply {
    pub answering: Arc<Answering>,
    pub tell: oneshot::Sender<Answered>,
    /// Cancelled when the message is to be dropped, because it took too long.
    pub late: CancellationToken,
}

/// A job that has ended but for its entry in the log.
pub(super) struct Ended {
    pub settlement: Settlement,
    pub hold: Arc<Hold>,
    pub slot: Option<Slot<Box<Job>>>,
    /// Where it is counted; what is given back is not.
    pub tally: Option<Tally>,
    /// Who is told of it, and what.
    pub told: Option<(oneshot::Sender<Answered>, Answered)>,
}

impl Job {
    pub(super) fn ended(self: Box<Self>, mut attempt: Attempt, backlog: &Arc<Backlog>) -> Ended {
        let share = Arc::clone(self.runnable.flow.backlog(backlog));
        let exit = backlog.exit(share, self.work.stored_bytes);
        let tally =
            Some(Tally::new(&self.runnable.flow.counts, self.work.received_at).leaving(exit));
        let told = self
            .reply
            .map(|reply| reply.tell)
            .zip(attempt.answered.take());
        Ended {
            settlement: attempt.settlement(self.lease),
            hold: self.hold,
            slot: Some(self.slot),
            tally,
            told,
        }
    }

    /// Given back out of an attempt that was broken off because the flow was taken out of service.
    pub(super) fn broken_off(self: Box<Self>, at: Timestamp) -> Ended {
        let record = TraceRecord {
            at,
            stage: "delivery".to_owned(),
            name: "flow".to_owned(),
            status: "failed".to_owned(),
            duration_ms: 0,
            request: None,
            response: None,
            error: Some(
                "the attempt was broken off, because the flow was taken out of service".to_owned(),
            ),
            attempt: self.work.attempt(),
        };
        let mut ended = self.given_back(Timestamp::steady());
        ended.settlement.trace = vec![record];
        ended
    }

    pub(super) fn given_back(self: Box<Self>, due: Timestamp) -> Ended {
        let settlement = release(self.lease, due);
        Ended {
            settlement,
            hold: self.hold,
            slot: Some(self.slot),
            tally: None,
            told: None,
        }
    }
}

impl Ended {
    /// A message that another node may run, given back with the reason why this one cannot; it
    /// counts as no attempt.
    pub(super) fn held(lease: Lease, hold: &Arc<Hold>, due: Timestamp, failure: Failure) -> Self {
        let mut ended = Self::undone(lease, hold, due);
        ended.settlement.outcome = Outcome::Hold { due };
        ended.settlement.failure = Some(failure);
        ended
    }

    /// A message that found no place, given back; it counts as no attempt.
    pub(super) fn undone(lease: Lease, hold: &Arc<Hold>, due: Timestamp) -> Self {
        Self {
            settlement: release(lease, due),
            hold: Arc::clone(hold),
            slot: None,
            tally: None,
            told: None,
        }
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
