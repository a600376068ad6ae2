//! Calls that wait for their turn: their messages stand behind others of the same ordering key. The log keeps these
//! messages for this node, which takes each up when its turn has come and answers the caller.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kanat_message_log::Settled;
use kanat_model::id::{BootId, FlowId, MessageId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::job::Reply;
use super::{Pipeline, persist};

/// Largest number of calls of one flow that wait at one node. Further ones with an ordering key are refused before they
/// are stored.
const MAX_CALLS: usize = 256;

/// The calls of a node that wait for their turn, by their flows. Each flow has a bounded number, so that one whose messages
/// stand still takes no room from others.
#[derive(Default)]
pub(super) struct Turns {
    flows: Mutex<HashMap<FlowId, HashMap<MessageId, Reply>>>,
    came: Notify,
}

impl Turns {
    /// Whether one more call of the flow may wait.
    pub fn has_room(&self, flow: &FlowId) -> bool {
        self.flows().get(flow).is_none_or(|calls| calls.len() < MAX_CALLS)
    }

    /// Woken when a call has begun to wait: its turn may have come already.
    pub fn came(&self) -> &Notify {
        &self.came
    }

    /// Returns the caller of a message that this node takes up, who waits no longer for its turn.
    pub fn take(&self, flow: &FlowId, id: &MessageId) -> Option<Reply> {
        let mut flows = self.flows();
        let calls = flows.get_mut(flow)?;
        let reply = calls.remove(id);
        if calls.is_empty() {
            flows.remove(flow);
        }
        reply
    }

    /// Returns the messages that are waited for, of the flows that `admits` lets run.
    pub fn awaited(&self, admits: impl Fn(&FlowId) -> bool) -> Vec<MessageId> {
        let flows = self.flows();
        let admitted = flows.iter().filter(|(flow, _)| admits(flow));
        admitted.flat_map(|(_, calls)| calls.keys().cloned()).collect()
    }

    fn begin(&self, flow: FlowId, id: MessageId, reply: Reply) {
        self.flows().entry(flow).or_default().insert(id, reply);
        self.came.notify_one();
    }

    fn is_waiting(&self, flow: &FlowId, id: &MessageId) -> bool {
        self.flows().get(flow).is_some_and(|calls| calls.contains_key(id))
    }

    fn flows(&self) -> MutexGuard<'_, HashMap<FlowId, HashMap<MessageId, Reply>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's wait for its turn. When it is dropped before the turn has come, the message is any node's to take up.
pub(crate) struct Turn {
    pipeline: Arc<Pipeline>,
    owner: BootId,
    flow: FlowId,
    id: MessageId,
    /// Cancelled when the flow is taken out of service.
    removed: CancellationToken,
}

impl Turn {
    /// Returns when the turn will not come at this node.
    pub async fn lost(&self) {
        tokio::select! {
            () = self.pipeline.draining.cancelled() => {}
            () = self.removed.cancelled() => {}
        }
        if !self.pipeline.turns.is_waiting(&self.flow, &self.id) {
            // The message runs here, and its end is told as that of any other.
            std::future::pending().await
        }
    }

    /// Waits on without a caller, so that a message that nobody wants any more is dropped when its turn comes.
    pub fn keep(mut self) {
        self.id = MessageId::new("");
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.pipeline.turns.take(&self.flow, &self.id).is_none() {
            return;
        }
        let pipeline = Arc::clone(&self.pipeline);
        let owner = self.owner.clone();
        let id = self.id.clone();
        let in_flight = self.pipeline.begin();
        self.pipeline.tasks.spawn(async move {
            let release = || async { pipeline.log.release_awaited(&owner, &id).await.map(|()| Settled::Done) };
            // Without it the message would wait for the end of this node's lease.
            let _ = persist(&id, release).await;
            drop(in_flight);
        });
    }
}

impl Pipeline {
    /// Has a call wait for the turn of its message, which the log keeps for `owner`.
    pub(super) fn await_turn(
        self: &Arc<Self>,
        owner: BootId,
        flow: FlowId,
        id: MessageId,
        removed: CancellationToken,
        reply: Reply,
    ) -> Turn {
        self.turns.begin(flow.clone(), id.clone(), reply);
        Turn { pipeline: Arc::clone(self), owner, flow, id, removed }
    }
}
