//! The traits of a message log: delivery and reading, and [`MessageLog`], which has all of them.
//! Plans, polls and quotas have their traits beside their types.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use tokio::sync::watch;

use crate::{
    AppendOutcome, AttemptedMessage, Backlog, Claim, ClaimedMessage, Content, EnvironmentFilter,
    EventPage, EventQuery, Filter, FlowEnd, LeasedWriteOutcome, Message, MessagePage, NewMessage,
    NodeLease, PlanStore, PollStore, Position, QuotaStore, RenewalOutcome, Result, RetryVersion,
    Settlement, StepCheckpoint, Tenant, TraceRecord, Waiting,
};

/// The durable record of every message, shared by all nodes.
///
/// A call that writes returns when its effect is on disk; with relaxed durability, when the effect
/// would survive a crash of the process. A call that fails has had no effect, unless the disk or
/// the server failed during the commit: then the effect may be there, or appear after the next
/// start. This holds for every trait of the log.
#[async_trait::async_trait]
pub trait MessageLog:
    DeliveryStore + MessageReader + PlanStore + PollStore + QuotaStore + 'static
{
    /// Puts a dead letter back into the backlog, with as many further attempts as it had at first.
    /// With `version`, that version of the flow runs it, under the keys of that version. A message
    /// with an ordering key waits for the one that a node works on, and then runs before the later
    /// ones that wait.
    async fn retry(
        &self,
        tenant: &Tenant,
        id: &MessageId,
        version: Option<RetryVersion>,
    ) -> Result<()>;

    /// Ends a dead letter, or a message that waits, without a delivery.
    async fn discard(&self, tenant: &Tenant, id: &MessageId) -> Result<()>;

    /// Drops messages that were received before `older_than` and are finished, gives their space
    /// back to the disk, and drops plans that nothing needs any more. Returns the number of dropped
    /// messages. Unfinished messages stay, however old.
    async fn retain(&self, older_than: Timestamp) -> Result<u64>;

    /// Drops messages of these flows that were received before `older_than` and are finished.
    /// Returns the number of dropped messages. Their space is given back by [`Self::retain`].
    async fn retain_flows(&self, flows: &[FlowId], older_than: Timestamp) -> Result<u64>;

    /// Returns whether the log has no message.
    async fn is_empty(&self) -> Result<bool>;

    /// Checks that the log can be read.
    async fn ping(&self) -> Result<()>;

    /// Returns counts of what was written since the start.
    fn stats(&self) -> Stats;

    /// Finishes what is queued and closes; later writes fail as unavailable.
    async fn close(&self);
}

/// Messages as nodes accept, claim and settle them.
#[async_trait::async_trait]
pub trait DeliveryStore: Send + Sync {
    /// Appends a message. [`Error::Full`](crate::Error::Full) at once, without waiting, when the
    /// queue is full.
    async fn append(&self, message: NewMessage) -> Result<AppendOutcome>;

    /// Appends messages together with their first attempts, all or none of them. Waits for room in
    /// the queue.
    async fn append_attempted(&self, messages: Vec<Arc<AttemptedMessage>>) -> Result<()>;

    /// Writes the end of an attempt. It is fenced if the message has another owner or token than
    /// the lease. The lease's time is not checked: after its end, the holder may settle until
    /// another node claims the message. Waits for room in the queue.
    async fn settle(&self, settlement: &Settlement) -> Result<LeasedWriteOutcome>;

    /// Writes the output of a step with its message. It is fenced as [`Self::settle`] is. An output
    /// of the same name is replaced.
    async fn checkpoint(&self, checkpoint: StepCheckpoint) -> Result<LeasedWriteOutcome>;

    /// Claims messages within the limit of each flow: those that are due, oldest first, and those
    /// of dead nodes.
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedMessage>>;

    /// Returns the flows that have messages for [`Self::claim`], now or at a later instant, in the
    /// order of their ids.
    async fn waiting(&self) -> Result<Vec<Waiting>>;

    /// Returns the backlog of every flow that has one, in the order of their ids. Takes time that
    /// grows with the number of unfinished messages.
    async fn backlog(&self) -> Result<Vec<Backlog>>;

    /// Returns a watch that changes when a message may have become claimable, other than by the
    /// passing of time alone (a due instant, the end of a lease).
    fn claimable(&self) -> watch::Receiver<u64>;

    /// Opens a lease: until it ends, no other node claims what `owner` holds. Leases of earlier
    /// boots of the same node end at once, and what they held can be claimed: the caller guarantees
    /// that no other process runs as this node.
    async fn open_lease(&self, owner: &BootId, node: &NodeId, ttl: Duration) -> Result<NodeLease>;

    /// Restarts the time of the lease, unless it has ended or the log was restored to a state from
    /// before it was opened.
    async fn renew_lease(&self, lease: &mut NodeLease) -> Result<RenewalOutcome>;

    /// Ends a lease: other nodes can claim at once what `owner` still holds.
    async fn hand_back(&self, owner: &BootId) -> Result<()>;

    /// Ends the messages of a flow that wait (`received`, `retrying`, `held`) as discarded with
    /// `failure`, as many as fit into one transaction. Messages that a node holds are left to that
    /// node.
    async fn end_flow(&self, flow_id: &FlowId, failure: &Failure) -> Result<FlowEnd>;

    /// Writes as much as a small message and leaves nothing of it.
    ///
    /// # Errors
    /// A message would be refused as well.
    async fn probe(&self) -> Result<()>;
}

/// Messages and their events as callers read them.
#[async_trait::async_trait]
pub trait MessageReader: Send + Sync {
    /// Returns messages of one flow, newest first.
    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage>;

    /// Returns messages of an environment, newest first. A call reads a bounded part of the log: a
    /// page may have fewer messages than asked for, or none, and names the position of the next
    /// page.
    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage>;

    /// Returns one message.
    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>>;

    /// Returns the message of the same ordering key that a message waits for; `None` for a message
    /// that waits for no other one.
    async fn head_of_key(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<MessageId>>;

    /// Returns the content of a message as it was received, for a replay.
    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>>;

    /// Returns the trace of a message, from its arrival on; empty when the message does not exist.
    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>>;

    /// Returns a watch that changes when an event was written or a message may have become
    /// claimable, other than by the passing of time alone.
    fn changed(&self) -> watch::Receiver<u64>;

    /// Returns events in their order. Reads a bounded stretch of the log at a time.
    async fn events(&self, query: &EventQuery) -> Result<EventPage>;

    /// Returns the sequence number of the last event. A stream of later events begins after it.
    async fn last_event(&self) -> Result<i64>;
}

/// Counts since the start. Operations over commits is the average size of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Commits with operations of callers: transactions, and records of the journal. A transaction
    /// that only applies pending writes is not counted.
    pub commits: u64,
    /// Operations in these commits.
    pub operations: u64,
    pub appended: u64,
    /// Settlements of messages: ends of attempts, and releases.
    pub settled: u64,
    pub claimed: u64,
}
