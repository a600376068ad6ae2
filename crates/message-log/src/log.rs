//! What every message log can do, whatever keeps it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use tokio::sync::watch;

use crate::{
    Appended, Backlog, Claim, Claimed, Content, EnvironmentFilter, Error, EventPage, EventQuery,
    Filter, FlowEnd, Message, MessagePage, NewMessage, NodeLease, Poll, PollClaim, PollClaimed,
    PollStanding, Position, Quotas, Renewed, SavedPlan, SeenRecord, Settled, Settlement,
    StepCheckpoint, Tenant, TraceRecord, Tried, Waiting,
};

/// The durable record of every message, shared by all nodes.
///
/// A call that writes returns when its effect is on disk. One that fails has had no effect.
#[async_trait::async_trait]
pub trait MessageLog: Quotas + Send + Sync + 'static {
    /// Keeps a message. [`Error::Full`] at once, without waiting, when the queue is full.
    async fn append(&self, message: NewMessage) -> Result<Appended, Error>;

    /// Keeps messages together with their first attempts, all or none of them. Waits for room in
    /// the queue.
    async fn append_tried(&self, tried: Vec<Arc<Tried>>) -> Result<(), Error>;

    /// Writes the end of an attempt, unless the lease is no longer good. Waits for room in the
    /// queue.
    async fn settle(&self, settlement: &Settlement) -> Result<Settled, Error>;

    /// Keeps the output of a step with its message, unless the lease is no longer good; the same
    /// name replaces.
    async fn checkpoint(&self, checkpoint: StepCheckpoint) -> Result<Settled, Error>;

    /// Takes what waits, within the room of each flow: what is due, oldest first, and what a dead
    /// node left behind.
    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, Error>;

    /// The flows that have something for [`Self::claim`] now or at a later instant, in the order of
    /// their ids.
    async fn waiting(&self) -> Result<Vec<Waiting>, Error>;

    /// Returns the backlog of every flow that has one, in the order of their ids. Takes time that
    /// grows with the number of unfinished messages.
    async fn backlog(&self) -> Result<Vec<Backlog>, Error>;

    /// Woken when an event was written or something may have become claimable. What becomes
    /// claimable by the passing of time alone (a due instant, the end of a lease) wakes nobody.
    fn changed(&self) -> watch::Receiver<u64>;

    /// Woken when something may have become claimable; [`Self::changed`] may be woken more often.
    fn claimable(&self) -> watch::Receiver<u64> {
        self.changed()
    }

    /// Begins a lease: what `owner` holds is safe from others until it ends. Earlier boots of the
    /// same node are dead at once, and what they held can be claimed: the caller vouches that no
    /// other process runs as this node.
    async fn open_lease(
        &self,
        owner: &BootId,
        node: &NodeId,
        ttl: Duration,
    ) -> Result<NodeLease, Error>;

    /// Begins the time of the lease anew, unless it has ended or the log has another past than when
    /// it was opened.
    async fn renew_lease(&self, lease: &mut NodeLease) -> Result<Renewed, Error>;

    /// Ends a lease: what `owner` still holds can be claimed by others at once.
    async fn hand_back(&self, owner: &BootId) -> Result<(), Error>;

    /// Keeps plans; the same version again replaces.
    async fn save_plans(&self, plans: Vec<SavedPlan>) -> Result<(), Error>;

    /// The plan of one version of a flow, as it was saved.
    async fn plan(&self, flow_id: &FlowId, version: u32) -> Result<Option<Bytes>, Error>;

    /// Takes up the poll of a flow, if it is due and nobody holds it.
    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimed, Error>;

    /// Writes what a poll has come to, unless another has taken it over.
    async fn keep_poll(&self, poll: &Poll) -> Result<Settled, Error>;

    /// Those of these records that a flow has seen.
    async fn seen_records(
        &self,
        flow_id: &FlowId,
        ids: &[String],
    ) -> Result<Vec<SeenRecord>, Error>;

    /// Notes that a flow has seen these records; of one id the last counts.
    async fn note_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<(), Error>;

    /// Forgets the records that a flow has seen before an instant and not since.
    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<(), Error>;

    /// How the polls of flows stand; without those that were never polled.
    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>, Error>;

    /// The flows that were ever polled and not forgotten, in the order of their ids.
    async fn polled_flows(&self) -> Result<Vec<FlowId>, Error>;

    /// Forgets some of what a flow has seen or, when nothing is left of that, its poll. `true` when
    /// there is more to do.
    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool, Error>;

    /// Messages of one flow, newest first.
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage, Error>;

    /// Messages of an environment, the last of the log first. A call looks at a bounded part of the
    /// log: a page may have fewer messages than asked for, or none, and say where the next begins.
    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage, Error>;

    /// One message.
    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>, Error>;

    /// What came in, for a replay.
    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error>;

    /// All that happened to a message, from its arrival on; empty when there is no such message.
    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>, Error>;

    /// A dead letter goes back into the backlog, with as many attempts as it had at first, under
    /// `flow_version` when one is given. With an ordering key it waits for the message of that key
    /// that is being worked on, then goes before the later ones that wait.
    async fn retry(
        &self,
        tenant: &Tenant,
        id: &MessageId,
        flow_version: Option<u32>,
    ) -> Result<(), Error>;

    /// A dead letter, or a message that waits, needs no delivery any more.
    async fn discard(&self, tenant: &Tenant, id: &MessageId) -> Result<(), Error>;

    /// Ends the messages of a flow that wait (`received`, `retrying`, `held`) as discarded with
    /// `failure`, as many as fit into one transaction. Messages that a node holds are left to that
    /// node.
    async fn end_flow(&self, flow_id: &FlowId, failure: &Failure) -> Result<FlowEnd, Error>;

    /// Events in their order. Reads a bounded stretch of the log at a time.
    async fn events(&self, query: &EventQuery) -> Result<EventPage, Error>;

    /// The last event written; a stream that wants only news begins after it.
    async fn last_event(&self) -> Result<i64, Error>;

    /// Drops what was received and finished before `older_than`, gives the room back to the disk,
    /// and drops plans that nothing needs any more. Says how many messages went. Unfinished
    /// messages stay, however old.
    async fn retain(&self, older_than: Timestamp) -> Result<u64, Error>;

    /// Returns whether the log has no message.
    async fn is_empty(&self) -> Result<bool, Error>;

    /// Whether the log can be read.
    async fn ping(&self) -> Result<(), Error>;

    /// Writes as much as a small message and leaves nothing of it.
    ///
    /// # Errors
    /// A message would be refused as well.
    async fn probe(&self) -> Result<(), Error>;

    /// How much was written since the start.
    fn stats(&self) -> Stats;

    /// Finishes what is queued and closes; later writes fail as unavailable.
    async fn close(&self);
}

/// Counts since the start; messages over commits is the size of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that reached the disk.
    pub commits: u64,
    /// Operations that these carried.
    pub operations: u64,
    pub appended: u64,
    pub settled: u64,
    pub claimed: u64,
}
