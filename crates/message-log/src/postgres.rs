//! The message log in a PostgreSQL database, shared by all nodes.
//!
//! Appends, settlements and step outputs are written in groups: `writer`. Claims and leases are
//! written by themselves, so that they wait for nothing. `sequence` explains the order of events
//! although groups commit in any order, `keys` the order of messages with one key, and `day` the
//! partitions of the tables.

mod append;
mod attempted;
mod backlog;
mod begin;
mod change;
mod claim;
mod columns;
mod commit_marker;
mod day;
mod dialect;
mod end;
mod events;
mod failure;
mod group_commit;
mod in_doubt;
mod keys;
mod lease;
mod notify;
mod operation;
mod operator_decision;
mod options;
mod plan;
mod poll;
mod pool;
mod queue;
mod quota;
mod read;
mod retain;
mod schema;
mod sequence;
mod shared;
mod step;
mod text;
mod transaction;
mod upkeep;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use kanat_database::Session;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, EpochId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use self::options::{Durability, Options};

use self::failure::{CallError, outward, silent};
use self::group_commit::GroupCommitQueue;
use self::in_doubt::{InDoubtOperation, InDoubtTransaction, Resolver};
use self::notify::NotifyChannel;
use self::operation::{Effect, ReplyGuard, ReplySender, Work};
use self::options::{Connections, LockSpace};
use self::pool::Pool;
use self::queue::{Queue, QueueReceivers, closed};
use self::shared::{LogState, Notification};
use self::writer::{Connector, Context, Writer};
use crate::attempted::AttemptedRow;
use crate::change::Change;
use crate::operator_decision::Decision;
use crate::{
    AppendOutcome, AttemptedMessage, Backlog, Claim, ClaimedMessage, DeliveryStore, FlowEnd,
    LeasedWriteOutcome, MessageLog, NewMessage, NodeLease, RenewalOutcome, Result, RetryVersion,
    Settlement, Stats, StepCheckpoint, Tenant, Waiting,
};

/// Longest time of a round of retention: many transactions, with pauses between them.
const RETAIN_TIMEOUT: Duration = Duration::from_secs(3_600);

/// A message log in one schema of a database, which any number of processes may have open.
///
/// It connects to the database itself, not through a pooler that shares sessions: it listens, and
/// prepares statements. While the database is away, or does not answer within
/// [`Options::patience`], calls fail as [`Error::Unavailable`](crate::Error::Unavailable); when it
/// is back, they work again.
pub struct PostgresLog {
    queue: Queue,
    readers: Pool,
    workers: Pool,
    context: Arc<Context>,
    tasks: TaskTracker,
    /// Ends the tasks when the log goes away without having been closed.
    _end: DropGuard,
}

impl PostgresLog {
    /// Opens the log at a `postgres://` address, or at that one of several, with commas between,
    /// that takes writes. Its schema is made when it is missing, and brought up to this build's
    /// when it is older.
    ///
    /// Errors when a newer build wrote it, or when it cannot be reached.
    pub async fn open(address: &str, options: Options) -> Result<Self> {
        let connecting = Connections::new(address, &options)?;
        let space = connecting.space;
        let mut session = connecting.session().await.map_err(outward)?;
        let conn = &mut session.connection;
        schema::migrate(conn, &connecting).await?;
        schema::check_locks(conn).await.map_err(outward)?;
        schema::check_connections(conn, options.connections())
            .await
            .map_err(outward)?;
        let today = day::prepare(conn, space).await.map_err(outward)?;

        let readers = connecting.calls(options.readers);
        let workers = connecting.calls(options.workers);
        let shared = Arc::new(LogState::default());
        let (queue, receivers) =
            Queue::new(options.max_queued_operations, options.max_queued_bytes);
        let (in_doubt, transactions) = mpsc::unbounded_channel();
        let (releases, to_release) = mpsc::unbounded_channel();
        let closing = CancellationToken::new();
        let channel = NotifyChannel::new(&connecting);
        let context = Arc::new(Context {
            connecting,
            shared: Arc::clone(&shared),
            closing,
            in_doubt,
            releases,
        });
        let closing = || context.closing.clone();

        let tasks = TaskTracker::new();
        let resolver = Resolver {
            transactions,
            pool: workers.clone(),
            shared: Arc::clone(&shared),
            releases: context.releases.clone(),
            closing: closing(),
        };
        tasks.spawn(resolver.run());
        tasks.spawn(upkeep::release(to_release, queue.clone(), closing()));
        tasks.spawn(upkeep::prepare_days(
            workers.clone(),
            context.connecting.clone(),
            today,
            closing(),
        ));
        tasks.spawn(channel.clone().publish(
            workers.clone(),
            context.connecting.clone(),
            Arc::clone(&shared),
            closing(),
        ));
        tasks.spawn(channel.subscribe(context.connecting.clone(), Arc::clone(&shared), closing()));
        tasks.spawn(notify::poll_fallback(shared, closing()));
        write(&tasks, receivers, &context, options.writers, session);
        tasks.close();
        let end = context.closing.clone().drop_guard();
        Ok(Self {
            queue,
            readers,
            workers,
            context,
            tasks,
            _end: end,
        })
    }

    /// Gives the log an epoch that is later than its present one, because it was restored: nodes
    /// that have it open drop what they hold of before when they next renew their leases. Returns
    /// the former epoch and the new one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn change_past(&self) -> Result<(EpochId, EpochId)> {
        self.ask(lease::change_past(&self.workers.current())).await
    }

    fn space(&self) -> LockSpace {
        self.context.connecting.space
    }

    /// Returns the answer of the database, or an error when it does not come in time: a connection
    /// may fall silent without being closed, and the database may continue on another server.
    async fn ask<T, E>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T>
    where
        E: Into<CallError>,
    {
        let patience = self.context.connecting.patience();
        let answered = patience.answered(async { Ok(call.await) }).await;
        match answered {
            Ok(result) => result.map_err(|error| error.into().0),
            Err(error) => Err(outward(error)),
        }
    }

    /// Runs a statement of its own, and returns the number of rows that it wrote.
    async fn write(&self, statement: Query<'_, Postgres, PgArguments>) -> Result<u64> {
        let workers = self.workers.current();
        let written = self.ask(statement.execute(&workers)).await?;
        Ok(written.rows_affected())
    }

    async fn decide(&self, tenant: &Tenant, id: &MessageId, decision: Decision) -> Result<()> {
        let workers = self.workers.current();
        self.ask(operator_decision::decide(
            &workers,
            self.space(),
            tenant,
            id,
            &decision,
        ))
        .await?;
        self.context.shared.publish(Notification::Claimable);
        Ok(())
    }

    /// Submits a write that has no effect, and is reported as fenced, once its lease was ended or
    /// taken over.
    async fn submit_under_lease(&self, work: Work) -> Result<LeasedWriteOutcome> {
        self.queue.submit(work).await?.into_leased_write()
    }
}

/// Starts the writers; the first of them takes over a connection.
fn write(
    tasks: &TaskTracker,
    receivers: QueueReceivers,
    context: &Arc<Context>,
    writers: u32,
    session: Session,
) {
    let QueueReceivers { keyed, free, bytes } = receivers;
    let writer = |queue: &Arc<GroupCommitQueue>, connection| Writer {
        queue: Arc::clone(queue),
        queued_bytes: Arc::clone(&bytes),
        context: Arc::clone(context),
        connection,
    };
    let free = GroupCommitQueue::new(free, context.closing.clone());
    tasks.spawn(writer(&free, Connector::new(session)).run());
    for _ in 1..writers.max(1) {
        tasks.spawn(writer(&free, Connector::default()).run());
    }
    tasks.spawn(
        writer(
            &GroupCommitQueue::new(keyed, context.closing.clone()),
            Connector::default(),
        )
        .run(),
    );
}

/// Runs a claim to its end, also when its caller has gone away.
async fn claim(workers: PgPool, context: Arc<Context>, claim: Claim, reply: ReplySender) {
    let answer = |result| ReplyGuard::new(result, context.releases.clone());
    match claim::claim(&workers, &context.connecting, &claim).await {
        Ok(claimed) => {
            // An empty claim sends no notification, or nodes that claim on notifications never
            // rest.
            let has_claimed = !claimed.is_empty();
            let effect = Effect::Claimed(claimed);
            if has_claimed {
                context.shared.progress.count_commit([&effect]);
                context.shared.publish(Notification::Events);
            }
            // A caller that has gone drops the answer, which gives back the leases in it.
            let _ = reply.send(answer(Ok(effect)));
        }
        Err(claim::ClaimError::Aborted(error)) => {
            let _ = reply.send(answer(Err(error)));
        }
        Err(claim::ClaimError::InDoubt {
            transaction,
            claimed,
        }) => {
            let operation = InDoubtOperation {
                reply: Some(reply),
                effect: Effect::Claimed(claimed),
            };
            let in_doubt = InDoubtTransaction::new(transaction, vec![operation]);
            // Fails only when the log is closed, and then the caller learns that.
            let _ = context.in_doubt.send(in_doubt);
        }
    }
}

#[async_trait::async_trait]
impl DeliveryStore for PostgresLog {
    async fn append(&self, message: NewMessage) -> Result<AppendOutcome> {
        self.queue
            .try_submit(Work::Append(Box::new(message)))
            .await?
            .into_appended()
    }

    async fn append_attempted(&self, messages: Vec<Arc<AttemptedMessage>>) -> Result<()> {
        let rows = messages
            .into_iter()
            .map(AttemptedRow::new)
            .collect::<Result<_, _>>()?;
        self.queue
            .submit(Work::AppendAttempted(rows))
            .await?
            .into_count()
            .map(drop)
    }

    async fn settle(&self, settlement: &Settlement) -> Result<LeasedWriteOutcome> {
        self.submit_under_lease(Work::Settle(Box::new(Change::settling(settlement)?)))
            .await
    }

    async fn checkpoint(&self, checkpoint: StepCheckpoint) -> Result<LeasedWriteOutcome> {
        self.submit_under_lease(Work::Checkpoint(Box::new(checkpoint)))
            .await
    }

    async fn claim(&self, asked: Claim) -> Result<Vec<ClaimedMessage>> {
        let (reply, answer) = oneshot::channel();
        self.tasks.spawn(claim(
            self.workers.current(),
            Arc::clone(&self.context),
            asked,
            reply,
        ));
        answer
            .await
            .map_err(|_| closed())?
            .into_result()?
            .into_claimed()
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        self.ask(claim::waiting(&self.workers.current())).await
    }

    async fn backlog(&self) -> Result<Vec<Backlog>> {
        self.ask(backlog::backlog(&self.workers.current())).await
    }

    fn claimable(&self) -> watch::Receiver<u64> {
        self.context.shared.progress.claimable()
    }

    async fn open_lease(&self, owner: &BootId, node: &NodeId, ttl: Duration) -> Result<NodeLease> {
        let lease = self
            .ask(lease::open(&self.workers.current(), owner, node, ttl))
            .await?;
        self.context.shared.publish(Notification::Claimable);
        Ok(lease)
    }

    async fn renew_lease(&self, lease: &mut NodeLease) -> Result<RenewalOutcome> {
        let workers = self.workers.current();
        let renewed = self.ask(lease::renew(&workers, lease)).await?;
        if let RenewalOutcome::PastChanged { .. } = &renewed {
            // The copy may be older than the partitions of today.
            let prepared =
                async { day::prepare(&mut *workers.acquire().await?, self.space()).await };
            self.ask(prepared).await?;
            self.context.shared.publish(Notification::Claimable);
        }
        Ok(renewed)
    }

    async fn hand_back(&self, owner: &BootId) -> Result<()> {
        self.ask(lease::hand_back(&self.workers.current(), owner))
            .await?;
        self.context.shared.publish(Notification::Claimable);
        Ok(())
    }

    async fn end_flow(&self, flow_id: &FlowId, failure: &Failure) -> Result<FlowEnd> {
        let workers = self.workers.current();
        let end = self
            .ask(end::end_flow(&workers, self.space(), flow_id, failure))
            .await?;
        if end == FlowEnd::Partial {
            self.context.shared.publish(Notification::Events);
        }
        Ok(end)
    }

    async fn probe(&self) -> Result<()> {
        self.ask(append::probe(&self.workers.current())).await
    }
}

#[async_trait::async_trait]
impl MessageLog for PostgresLog {
    async fn retry(
        &self,
        tenant: &Tenant,
        id: &MessageId,
        version: Option<RetryVersion>,
    ) -> Result<()> {
        self.decide(tenant, id, Decision::Retry(version)).await
    }

    async fn discard(&self, tenant: &Tenant, id: &MessageId) -> Result<()> {
        self.decide(tenant, id, Decision::Discard).await
    }

    async fn retain(&self, older_than: Timestamp) -> Result<u64> {
        let workers = self.workers.current();
        let retained = retain::retain(&workers, self.space(), older_than);
        timeout(RETAIN_TIMEOUT, retained)
            .await
            .unwrap_or_else(|_| Err(silent()))
            .map_err(outward)
    }

    async fn retain_flows(&self, flows: &[FlowId], older_than: Timestamp) -> Result<u64> {
        let workers = self.workers.current();
        let retained = retain::retain_flows(&workers, flows, older_than);
        timeout(RETAIN_TIMEOUT, retained)
            .await
            .unwrap_or_else(|_| Err(silent()))
            .map_err(outward)
    }

    async fn is_empty(&self) -> Result<bool> {
        self.ask(crate::message::read::is_empty(&self.readers.current()))
            .await
    }

    async fn ping(&self) -> Result<()> {
        self.ask(read::ping(&self.readers.current())).await
    }

    fn stats(&self) -> Stats {
        self.context.shared.progress.stats()
    }

    async fn close(&self) {
        self.context.closing.cancel();
        self.tasks.wait().await;
        self.readers.close().await;
        self.workers.close().await;
    }
}
