//! Calls that wait for their turn: their messages stand behind others of the same ordering key. The
//! log keeps these messages for this node, which runs each one when its turn has come and answers
//! the caller.

use std::collections::HashMap;
use std::sync::Arc;

use kanat_engine::Record;
use kanat_message_log::{Lease, Outcome, Settlement, TraceRecord};
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Pipeline;
use super::job::{FinishedJob, Reply};
use super::lease::ActiveLease;
use crate::delivery::trace::single;

/// Number of calls of one flow that wait at one node, about: of calls that begin at the same time
/// all are taken. Further ones with an ordering key are refused before they are stored.
const MAX_CALLS: usize = 256;

/// The calls of a node that wait for their turn, by their flows. Each flow has a bounded number, so
/// that one whose messages stand still takes no room from others.
#[derive(Default)]
pub(super) struct Turns {
    flows: Mutex<HashMap<FlowId, HashMap<MessageId, Call>>>,
    came: Notify,
}

/// A caller, and the place of the message in the log.
struct Call {
    seq: i64,
    reply: Reply,
}

impl Turns {
    /// Returns whether one more call of the flow may wait.
    pub fn has_room(&self, flow: &FlowId) -> bool {
        self.flows
            .lock()
            .get(flow)
            .is_none_or(|calls| calls.len() < MAX_CALLS)
    }

    /// Is woken when a call has begun to wait: its turn may have come already.
    pub fn came(&self) -> &Notify {
        &self.came
    }

    /// Removes a call that no longer waits, because its message is processed. Returns its caller.
    pub fn take(&self, flow: &FlowId, id: &MessageId) -> Option<Reply> {
        let mut flows = self.flows.lock();
        let calls = flows.get_mut(flow)?;
        let call = calls.remove(id);
        if calls.is_empty() {
            flows.remove(flow);
        }
        call.map(|call| call.reply)
    }

    /// Returns the places in the log of the messages that are waited for, flow by flow.
    pub fn awaited(&self) -> Vec<(FlowId, Vec<i64>)> {
        let flows = self.flows.lock();
        flows
            .iter()
            .map(|(flow, calls)| (flow.clone(), calls.values().map(|call| call.seq).collect()))
            .collect()
    }

    fn begin(&self, flow: FlowId, lease: &Lease, reply: Reply) {
        let call = Call {
            seq: lease.seq,
            reply,
        };
        self.flows
            .lock()
            .entry(flow)
            .or_default()
            .insert(lease.message_id.clone(), call);
        self.came.notify_one();
    }

    fn is_waiting(&self, flow: &FlowId, id: &MessageId) -> bool {
        self.flows
            .lock()
            .get(flow)
            .is_some_and(|calls| calls.contains_key(id))
    }
}

/// Wait of a call for its turn. When it is dropped before the turn has come, any node may process
/// the message.
pub(crate) struct Turn {
    pipeline: Arc<Pipeline>,
    flow: FlowId,
    lease: Lease,
    node_lease: Arc<ActiveLease>,
    /// Cancelled when the flow is taken out of service.
    removed: CancellationToken,
}

/// Reason why a turn will not come at this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnLoss {
    /// Another node processes the message.
    HandedBack,
    /// The flow was taken out of service.
    Removed,
}

impl Turn {
    /// Returns when the turn will not come at this node.
    pub async fn lost(&self) -> TurnLoss {
        let lost = tokio::select! {
            () = self.pipeline.draining.cancelled() => TurnLoss::HandedBack,
            () = self.node_lease.lost().cancelled() => TurnLoss::HandedBack,
            () = self.removed.cancelled() => TurnLoss::Removed,
        };
        if !self
            .pipeline
            .turns
            .is_waiting(&self.flow, &self.lease.message_id)
        {
            // The message runs here: its caller gets the outcome as usual.
            std::future::pending::<()>().await;
        }
        lost
    }

    /// Discards the message without an attempt, because its caller does not want it any more. The
    /// caller of a message that already runs gets its reply.
    pub fn discard(self, message: &str) {
        let failure = Failure::new(ErrorKind::Timeout, message);
        let record = Record {
            at: Timestamp::now(),
            error: Some(message.to_owned()),
            ..Record::new("discarded", "api", "failed", 0)
        };
        self.give_up(Outcome::Discarded, Some(failure), single(0, record));
    }

    /// Ends the wait with an outcome, unless the message already runs.
    fn give_up(&self, outcome: Outcome, failure: Option<Failure>, trace: Vec<TraceRecord>) {
        if self
            .pipeline
            .turns
            .take(&self.flow, &self.lease.message_id)
            .is_none()
        {
            return;
        }
        let lease = self.lease.clone();
        let at = Timestamp::now();
        let settlement = Settlement {
            lease,
            at,
            // It has not run.
            attempt: 0,
            outcome,
            output: None,
            failure,
            trace,
        };
        self.pipeline.finish(FinishedJob {
            settlement,
            node_lease: Arc::clone(&self.node_lease),
            slot: None,
            tally: None,
            reply: None,
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_up(Outcome::Yield, None, Vec::new());
    }
}

impl Pipeline {
    /// Has a call wait for the turn of its message, which the log keeps for this node.
    pub(super) fn await_turn(
        self: &Arc<Self>,
        flow: FlowId,
        lease: Lease,
        node_lease: Arc<ActiveLease>,
        removed: CancellationToken,
        reply: Reply,
    ) -> Turn {
        self.turns.begin(flow.clone(), &lease, reply);
        Turn {
            pipeline: Arc::clone(self),
            flow,
            lease,
            node_lease,
            removed,
        }
    }
}
