//! The message log in a PostgreSQL database, shared by all nodes.
//!
//! Appends, settlements and step outputs are written in groups: `writer`. Claims and leases are
//! written by themselves, so that they wait for nothing. How the order of events stands although
//! groups commit in any order is told in `sequence`, how the order of messages with one key does in
//! `keys`, and where messages are kept in `day`.

mod append;
mod backlog;
mod begin;
mod change;
mod claim;
mod day;
mod doubt;
mod end;
mod events;
mod failure;
mod keys;
mod lease;
mod list;
mod list_environment;
mod news;
mod operation;
mod options;
mod person;
mod plan;
mod poll;
mod pool;
mod queue;
mod quota;
mod read;
mod retain;
mod row;
mod schema;
mod sequence;
mod shared;
mod step;
mod text;
mod transaction;
mod tried;
mod upkeep;
mod way;
mod witness;
mod writer;

#[cfg(test)]
mod tests;

use std::convert::identity;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kanat_database::Session;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, ConsumerKeyId, EpochId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

pub use self::options::{Durability, Options};

use self::doubt::{Doubt, Outcome};
use self::failure::{outward, silent};
use self::news::Line;
use self::operation::{Answer, Change, Effect, Reply, Work};
use self::options::{Connecting, LockSpace};
use self::person::Decision;
use self::pool::Pool;
use self::queue::{Ends, Queue, closed, unexpected};
use self::shared::Shared;
use self::way::Way;
use self::writer::{Connector, Context, Writer};
use crate::tried::Row;
use crate::{
    Appended, Backlog, Claim, Claimed, Content, EnvironmentFilter, Error, EventPage, EventQuery,
    Exchange, Exchanged, Filter, FlowEnd, KeyUsage, Message, MessageLog, MessagePage, NewMessage,
    NodeLease, Poll, PollClaim, PollClaimed, PollStanding, Position, Quotas, Renewed, SavedPlan,
    SeenRecord, Settled, Settlement, Stats, StepCheckpoint, Tenant, TraceRecord, Tried, Waiting,
};

/// Longest that a round of retention may take: many transactions, with pauses between them.
const RETAIN_WITHIN: Duration = Duration::from_secs(3_600);

/// A message log in one schema of a database, which any number of processes may have open.
///
/// It connects to the database itself, not through a pooler that shares sessions: it listens, and
/// prepares statements. While the database is away, or does not answer within
/// [`Options::patience`], calls fail as [`Error::Unavailable`]; when it is back, they work again.
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
    pub async fn open(address: &str, options: Options) -> Result<Self, Error> {
        let connecting = Connecting::new(address, &options)?;
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
        let shared = Arc::new(Shared::new());
        let (queue, ends) = Queue::new(options.queue, options.queue_bytes);
        let (doubts, doubtful) = mpsc::unbounded_channel();
        let (abandoned, to_give_back) = mpsc::unbounded_channel();
        let closing = CancellationToken::new();
        let line = Line::new(&connecting);
        let context = Arc::new(Context {
            connecting,
            shared: Arc::clone(&shared),
            closing,
            doubts,
            abandoned,
        });
        let closing = || context.closing.clone();

        let tasks = TaskTracker::new();
        tasks.spawn(doubt::run(doubtful, workers.clone(), Arc::clone(&context)));
        tasks.spawn(upkeep::give_back(to_give_back, queue.clone(), closing()));
        tasks.spawn(upkeep::prepare_days(
            workers.clone(),
            context.connecting.clone(),
            today,
            closing(),
        ));
        tasks.spawn(line.clone().tell(
            workers.clone(),
            context.connecting.clone(),
            Arc::clone(&shared),
            closing(),
        ));
        tasks.spawn(line.hear(context.connecting.clone(), Arc::clone(&shared), closing()));
        tasks.spawn(news::look_again(shared, closing()));
        write(&tasks, ends, &context, options.writers, session);
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
    pub async fn change_past(&self) -> Result<(EpochId, EpochId), Error> {
        self.ask(lease::change_past(&self.workers.current()), outward)
            .await
    }

    fn space(&self) -> LockSpace {
        self.context.connecting.space
    }

    /// What the database says, when it says it in time: a connection may fall silent without an end
    /// that anybody hears of, and the database may go on at another server.
    async fn ask<T, E>(
        &self,
        call: impl Future<Output = Result<T, E>>,
        outward_of: impl FnOnce(E) -> Error,
    ) -> Result<T, Error> {
        let patience = self.context.connecting.patience();
        let answered = patience.answered(async { Ok(call.await) }).await;
        answered.map_or_else(
            |error| Err(outward(error)),
            |result| result.map_err(outward_of),
        )
    }

    async fn settled(&self, work: Work) -> Result<Settled, Error> {
        match self.queue.submit(work).await? {
            Effect::Settled(settled) => Ok(settled),
            other => Err(unexpected(&other)),
        }
    }
}

/// Starts the writers; the first of them takes over a connection.
fn write(tasks: &TaskTracker, ends: Ends, context: &Arc<Context>, writers: u32, session: Session) {
    let Ends { keyed, free, bytes } = ends;
    let writer = |way: &Arc<Way>, connection| Writer {
        way: Arc::clone(way),
        queued_bytes: Arc::clone(&bytes),
        context: Arc::clone(context),
        connection,
    };
    let free = Way::new(free, context.closing.clone());
    tasks.spawn(writer(&free, Connector::new(session)).run());
    for _ in 1..writers.max(1) {
        tasks.spawn(writer(&free, Connector::default()).run());
    }
    tasks.spawn(
        writer(
            &Way::new(keyed, context.closing.clone()),
            Connector::default(),
        )
        .run(),
    );
}

/// A claim on its own, so that it comes to an end also when nobody waits for it any more.
async fn claim(workers: PgPool, context: Arc<Context>, claim: Claim, reply: Reply) {
    let answer = |result| Answer::new(result, context.abandoned.clone());
    match claim::claim(&workers, &context.connecting, &claim).await {
        Ok(claimed) => {
            // Nothing found is no news: whoever claims on news would never rest.
            let news = !claimed.is_empty();
            let effect = Effect::Claimed(claimed);
            if news {
                context.shared.committed([&effect]);
                context.shared.happened(shared::Change::Events);
            }
            // A caller that has gone drops the answer, which gives back the leases in it.
            let _ = reply.send(answer(Ok(effect)));
        }
        Err(claim::Failed::Undone(error)) => {
            let _ = reply.send(answer(Err(error)));
        }
        Err(claim::Failed::InDoubt { trail, claimed }) => {
            let outcome = Outcome {
                reply: Some(reply),
                effect: Effect::Claimed(claimed),
            };
            // Fails only when the log is closed, and then the caller learns that.
            let _ = context.doubts.send(Doubt::new(trail, vec![outcome]));
        }
    }
}

#[async_trait::async_trait]
impl Quotas for PostgresLog {
    fn is_shared(&self) -> bool {
        true
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<Exchanged, Error> {
        if exchange.asks.is_empty() {
            return self
                .ask(quota::look(&self.readers.current()), outward)
                .await;
        }
        self.ask(quota::exchange(&self.workers.current(), exchange), outward)
            .await
    }

    async fn key_usage(&self, keys: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>, Error> {
        self.ask(quota::usage(&self.readers.current(), keys), outward)
            .await
    }
}

#[async_trait::async_trait]
impl MessageLog for PostgresLog {
    async fn append(&self, message: NewMessage) -> Result<Appended, Error> {
        match self
            .queue
            .try_submit(Work::Append(Box::new(message)))
            .await?
        {
            Effect::Appended(appended) => Ok(appended),
            other => Err(unexpected(&other)),
        }
    }

    async fn append_tried(&self, tried: Vec<Arc<Tried>>) -> Result<(), Error> {
        let rows = tried.into_iter().map(Row::of).collect::<Result<_, _>>()?;
        match self.queue.submit(Work::AppendTried(rows)).await? {
            Effect::Tried(_) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn settle(&self, settlement: &Settlement) -> Result<Settled, Error> {
        self.settled(Work::Settle(Box::new(Change::settling(settlement)?)))
            .await
    }

    async fn checkpoint(&self, checkpoint: StepCheckpoint) -> Result<Settled, Error> {
        self.settled(Work::Checkpoint(Box::new(checkpoint))).await
    }

    async fn claim(&self, asked: Claim) -> Result<Vec<Claimed>, Error> {
        let (reply, answer) = oneshot::channel();
        self.tasks.spawn(claim(
            self.workers.current(),
            Arc::clone(&self.context),
            asked,
            reply,
        ));
        match answer.await.map_err(|_| closed())?.open()? {
            Effect::Claimed(claimed) => Ok(claimed),
            other => Err(unexpected(&other)),
        }
    }

    async fn backlog(&self) -> Result<Vec<Backlog>, Error> {
        self.ask(backlog::backlog(&self.workers.current()), outward)
            .await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>, Error> {
        self.ask(claim::waiting(&self.workers.current()), outward)
            .await
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.context.shared.changed()
    }

    fn claimable(&self) -> watch::Receiver<u64> {
        self.context.shared.claimable()
    }

    async fn open_lease(
        &self,
        owner: &BootId,
        node: &NodeId,
        ttl: Duration,
    ) -> Result<NodeLease, Error> {
        let lease = self
            .ask(
                lease::open(&self.workers.current(), owner, node, ttl),
                outward,
            )
            .await?;
        self.context.shared.happened(shared::Change::Claimable);
        Ok(lease)
    }

    async fn renew_lease(&self, lease: &mut NodeLease) -> Result<Renewed, Error> {
        let workers = self.workers.current();
        let renewed = self.ask(lease::renew(&workers, lease), outward).await?;
        if let Renewed::PastChanged { .. } = &renewed {
            // The copy may be older than the partitions of today.
            let prepared =
                async { day::prepare(&mut *workers.acquire().await?, self.space()).await };
            self.ask(prepared, outward).await?;
            self.context.shared.happened(shared::Change::Claimable);
        }
        Ok(renewed)
    }

    async fn hand_back(&self, owner: &BootId) -> Result<(), Error> {
        self.ask(lease::hand_back(&self.workers.current(), owner), outward)
            .await?;
        self.context.shared.happened(shared::Change::Claimable);
        Ok(())
    }

    async fn save_plans(&self, plans: Vec<SavedPlan>) -> Result<(), Error> {
        self.ask(plan::save(&self.workers.current(), plans), outward)
            .await
    }

    async fn plan(&self, flow_id: &FlowId, version: u32) -> Result<Option<Bytes>, Error> {
        self.ask(
            plan::get(&self.workers.current(), flow_id, version),
            outward,
        )
        .await
    }

    async fn claim_poll(&self, claim: &PollClaim) -> Result<PollClaimed, Error> {
        self.ask(poll::claim(&self.workers.current(), claim), outward)
            .await
    }

    async fn keep_poll(&self, poll: &Poll) -> Result<Settled, Error> {
        self.ask(poll::keep(&self.workers.current(), poll), outward)
            .await
    }

    async fn seen_records(
        &self,
        flow_id: &FlowId,
        ids: &[String],
    ) -> Result<Vec<SeenRecord>, Error> {
        self.ask(poll::seen(&self.readers.current(), flow_id, ids), outward)
            .await
    }

    async fn note_records(&self, flow_id: &FlowId, records: Vec<SeenRecord>) -> Result<(), Error> {
        self.ask(
            poll::note(&self.workers.current(), flow_id, &records),
            outward,
        )
        .await
    }

    async fn forget_records(&self, flow_id: &FlowId, before: Timestamp) -> Result<(), Error> {
        self.ask(
            poll::forget(&self.workers.current(), flow_id, before),
            outward,
        )
        .await
    }

    async fn polls(&self, flow_ids: &[FlowId]) -> Result<Vec<(FlowId, PollStanding)>, Error> {
        self.ask(poll::standings(&self.readers.current(), flow_ids), outward)
            .await
    }

    async fn polled_flows(&self) -> Result<Vec<FlowId>, Error> {
        self.ask(poll::flows(&self.readers.current()), outward)
            .await
    }

    async fn forget_poll(&self, flow_id: &FlowId) -> Result<bool, Error> {
        self.ask(poll::forget_poll(&self.workers.current(), flow_id), outward)
            .await
    }

    async fn list(&self, filter: &Filter, position: Position) -> Result<MessagePage, Error> {
        self.ask(
            list::list(&self.readers.current(), filter, position),
            identity,
        )
        .await
    }

    async fn list_environment(
        &self,
        filter: &EnvironmentFilter,
        position: Position,
    ) -> Result<MessagePage, Error> {
        self.ask(
            list_environment::list(&self.readers.current(), filter, position),
            identity,
        )
        .await
    }

    async fn get(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Message>, Error> {
        self.ask(read::get(&self.readers.current(), tenant, id), identity)
            .await
    }

    async fn content(&self, tenant: &Tenant, id: &MessageId) -> Result<Option<Content>, Error> {
        self.ask(read::content(&self.readers.current(), tenant, id), identity)
            .await
    }

    async fn trace(&self, tenant: &Tenant, id: &MessageId) -> Result<Vec<TraceRecord>, Error> {
        self.ask(read::trace(&self.readers.current(), tenant, id), identity)
            .await
    }

    async fn retry(
        &self,
        tenant: &Tenant,
        id: &MessageId,
        flow_version: Option<u32>,
    ) -> Result<(), Error> {
        let decision = Decision::Retry { flow_version };
        self.ask(
            person::decide(&self.workers.current(), self.space(), tenant, id, decision),
            identity,
        )
        .await?;
        self.context.shared.happened(shared::Change::Claimable);
        Ok(())
    }

    async fn discard(&self, tenant: &Tenant, id: &MessageId) -> Result<(), Error> {
        self.ask(
            person::decide(
                &self.workers.current(),
                self.space(),
                tenant,
                id,
                Decision::Discard,
            ),
            identity,
        )
        .await?;
        self.context.shared.happened(shared::Change::Claimable);
        Ok(())
    }

    async fn end_flow(&self, flow_id: &FlowId, failure: &Failure) -> Result<FlowEnd, Error> {
        let workers = self.workers.current();
        let end = self
            .ask(
                end::end_flow(&workers, self.space(), flow_id, failure),
                identity,
            )
            .await?;
        if end == FlowEnd::Partial {
            self.context.shared.happened(shared::Change::Events);
        }
        Ok(end)
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, Error> {
        self.ask(
            events::events(&self.readers.current(), self.space(), query),
            outward,
        )
        .await
    }

    async fn last_event(&self) -> Result<i64, Error> {
        let horizon = self
            .ask(
                sequence::horizon(&self.readers.current(), self.space()),
                outward,
            )
            .await?;
        Ok(horizon.readable)
    }

    async fn retain(&self, older_than: Timestamp) -> Result<u64, Error> {
        let workers = self.workers.current();
        let retained = retain::retain(&workers, self.space(), older_than);
        timeout(RETAIN_WITHIN, retained)
            .await
            .unwrap_or_else(|_| Err(outward(silent())))
    }

    async fn is_empty(&self) -> Result<bool, Error> {
        self.ask(read::is_empty(&self.readers.current()), outward)
            .await
    }

    async fn ping(&self) -> Result<(), Error> {
        self.ask(read::ping(&self.readers.current()), identity)
            .await
    }

    async fn probe(&self) -> Result<(), Error> {
        self.ask(append::probe(&self.workers.current()), outward)
            .await
    }

    fn stats(&self) -> Stats {
        self.context.shared.stats()
    }

    async fn close(&self) {
        self.context.closing.cancel();
        self.tasks.wait().await;
        self.readers.close().await;
        self.workers.close().await;
    }
}
