//! A message that this node processes under a lease, and its result.

use std::sync::Arc;

use kanat_engine::Record;
use kanat_message_log::{Lease, Outcome, Settlement};
use kanat_model::Timestamp;
use kanat_model::message::Failure;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::lane::Slot;
use super::lease::ActiveLease;
use super::tally::Tally;
use crate::backlog::Backlog;
use crate::delivery::trace::single;
use crate::delivery::{Attempt, CallOutcome};
use crate::plans::Runnable;
use crate::plans::published::ResponseMapping;
use crate::work::MessageInMemory;

/// A message to process.
pub(crate) struct Job {
    pub lease: Lease,
    pub node_lease: Arc<ActiveLease>,
    /// Slot in the lane, kept until the outcome is durable.
    pub slot: Slot<Box<Job>>,
    pub runnable: Runnable,
    pub work: MessageInMemory,
    /// Caller that waits for the end of this attempt, if any.
    pub reply: Option<Reply>,
}

/// Channel to a caller that waits for the outcome of a run.
pub(crate) struct Reply {
    pub response_mapping: Arc<ResponseMapping>,
    pub reply_tx: oneshot::Sender<CallOutcome>,
    /// Cancelled when the caller's deadline has passed: the message is discarded.
    pub deadline: CancellationToken,
}

/// A job whose settlement is not in the log yet.
pub(super) struct FinishedJob {
    pub settlement: Settlement,
    pub node_lease: Arc<ActiveLease>,
    pub slot: Option<Slot<Box<Job>>>,
    /// Counters of the message; `None` for a message that is given back.
    pub tally: Option<Tally>,
    /// Caller that waits, and the outcome for it.
    pub reply: Option<(oneshot::Sender<CallOutcome>, CallOutcome)>,
}

impl Job {
    /// Ends the job with the result of its attempt.
    pub(super) fn finish(
        self: Box<Self>,
        mut attempt: Attempt,
        backlog: &Arc<Backlog>,
    ) -> FinishedJob {
        let share = Arc::clone(self.runnable.flow.backlog(backlog));
        let exit = backlog.exit(share, self.work.stored_bytes);
        let tally =
            Some(Tally::new(&self.runnable.flow.counts, self.work.received_at).leaving(exit));
        let reply = self
            .reply
            .map(|reply| reply.reply_tx)
            .zip(attempt.call_outcome.take());
        FinishedJob {
            settlement: attempt.settlement(self.lease),
            node_lease: self.node_lease,
            slot: Some(self.slot),
            tally,
            reply,
        }
    }

    /// Gives the message back: the flow was taken out of service during the attempt.
    pub(super) fn interrupt(self: Box<Self>, at: Timestamp) -> FinishedJob {
        let message = "the attempt was broken off, because the flow was taken out of service";
        let record = Record {
            at,
            error: Some(message.to_owned()),
            ..Record::new("delivery", "flow", "failed", 0)
        };
        let trace = single(self.work.attempt(), record);
        let mut finished = self.release(Timestamp::steady());
        finished.settlement.trace = trace;
        finished
    }

    /// Gives the message back without an attempt.
    pub(super) fn release(self: Box<Self>, due: Timestamp) -> FinishedJob {
        let settlement = released(self.lease, due);
        FinishedJob {
            settlement,
            node_lease: self.node_lease,
            slot: Some(self.slot),
            tally: None,
            reply: None,
        }
    }
}

impl FinishedJob {
    /// Gives a message back without an attempt, with the reason why this node cannot run it:
    /// another node may.
    pub(super) fn hold(
        lease: Lease,
        node_lease: &Arc<ActiveLease>,
        due: Timestamp,
        failure: Failure,
    ) -> Self {
        let mut finished = Self::release(lease, node_lease, due);
        finished.settlement.outcome = Outcome::Hold { due };
        finished.settlement.failure = Some(failure);
        finished
    }

    /// Gives a message back without an attempt.
    pub(super) fn release(lease: Lease, node_lease: &Arc<ActiveLease>, due: Timestamp) -> Self {
        Self {
            settlement: released(lease, due),
            node_lease: Arc::clone(node_lease),
            slot: None,
            tally: None,
            reply: None,
        }
    }
}

fn released(lease: Lease, due: Timestamp) -> Settlement {
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
