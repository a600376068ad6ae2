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

/// Largest number of calls that wait at one node. Further calls with an ordering key are refused before they are stored.
const MAX_CALLS: usize = 4_096;

/// Largest number of messages that one claim asks for.
const MAX_ASKED: usize = 1_024;

/// The calls of a node that wait for their turn.
#[derive(Default)]
pub(super) struct Turns {
    calls: Mutex<HashMap<MessageId, Call>>,
    came: Notify,
}

struct Call {
    flow: FlowId,
    reply: Reply,
}

impl Turns {
    pub fn has_room(&self) -> bool {
        self.calls().len() < MAX_CALLS
    }

    /// Woken when a call has begun to wait: its turn may have come already.
    pub fn came(&self) -> &Notify {
        &self.came
    }

    /// Returns the caller of a message that this node takes up, who waits no longer for its turn.
    pub fn take(&self, id: &MessageId) -> Option<Reply> {
        self.calls().remove(id).map(|call| call.reply)
    }

    /// Returns messages that are waited for, of the flows that `admits` lets run.
    pub fn awaited(&self, mut admits: impl FnMut(&FlowId) -> bool) -> Vec<MessageId> {
        let calls = self.calls();
        let mut admitted: HashMap<&FlowId, bool> = HashMap::new();
        let mut admits = |flow| *admitted.entry(flow).or_insert_with(|| admits(flow));
        let awaited = calls.iter().filter(|(_, call)| admits(&call.flow)).map(|(id, _)| id.clone());
        awaited.take(MAX_ASKED).collect()
    }

    fn begin(&self, id: MessageId, flow: FlowId, reply: Reply) {
        self.calls().insert(id, Call { flow, reply });
        self.came.notify_one();
    }

    fn is_waiting(&self, id: &MessageId) -> bool {
        self.calls().contains_key(id)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<MessageId, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call's wait for its turn. When it is dropped before the turn has come, the message is any node's to take up.
pub(crate) struct Turn {
    pipeline: Arc<Pipeline>,
    owner: BootId,
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
        if !self.pipeline.turns.is_waiting(&self.id) {
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
        if self.pipeline.turns.take(&self.id).is_none() {
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
        id: MessageId,
        flow: FlowId,
        removed: CancellationToken,
        reply: Reply,
    ) -> Turn {
        self.turns.begin(id.clone(), flow, reply);
        Turn { pipeline: Arc::clone(self), owner, id, removed }
    }
}
