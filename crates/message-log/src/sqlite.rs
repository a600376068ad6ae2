//! The message log in an SQLite file. Beside it are its write-ahead log, the journal
//! (`sqlite/journal.rs`), which has operations that the tables still lack, and the reserve
//! (`sqlite/reserve.rs`).

mod append;
mod attempted;
mod backlog;
mod change;
mod checkpoint;
mod claim;
mod dialect;
mod end;
mod events;
mod execute;
mod failpoints;
mod failure;
mod files;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod inbox;
mod journal;
mod lease;
mod maintenance;
mod operation;
mod operator_decision;
mod options;
mod plan;
mod poll;
mod quota;
mod read;
mod reserve;
mod retain;
mod schema;
mod search;
mod state;
mod statements;
mod step;
mod sync_failures;
mod transaction;
mod write_failure_log;
mod writer;
mod writer_handle;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use kanat_model::message::Failure;
use rusqlite::Connection;
use sqlx::SqlitePool;
use tokio::sync::{Mutex, watch};
use tokio_util::task::TaskTracker;

pub use self::options::{Durability, Options};
use self::options::{READERS, SEARCHERS};

use self::checkpoint::{CheckpointHandle, Checkpointer};
use self::files::OpenFiles;
use self::inbox::Inbox;
use self::journal::Journal;
use self::operation::{Effect, Task, Work};
use self::reserve::Reserve;
use self::state::LogState;
use self::sync_failures::SyncFailures;
use self::writer::Writer;
use self::writer_handle::WriterHandle;
use crate::attempted::AttemptedRow;
use crate::change::Change;
use crate::lease::LeaseState;
use crate::operator_decision::Decision;
use crate::{
    AppendOutcome, AttemptedMessage, Backlog, Claim, ClaimedMessage, DeliveryStore, Error, FlowEnd,
    LeasedWriteOutcome, MessageLog, NewMessage, NodeLease, RenewalOutcome, Result, RetryVersion,
    Settlement, Stats, StepCheckpoint, Tenant, Waiting,
};

/// A message log in an SQLite file and the files beside it. The caller makes sure that one process
/// at a time has it open.
pub struct SqliteLog {
    writer: WriterHandle,
    reader: SqlitePool,
    /// Connections of lists that search payloads.
    searcher: SqlitePool,
    state: Arc<LogState>,
    files: OpenFiles,
    /// Held by a claim, which first reads and then writes: two concurrent claims would select the
    /// same messages.
    claim_lock: Mutex<()>,
    tasks: TaskTracker,
}

impl SqliteLog {
    /// Opens the file, which is created when it is missing and migrated when its schema is older.
    ///
    /// # Errors
    /// The file has a newer schema, or cannot be opened.
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::start(path.as_ref(), options, SyncFailures::default()).await
    }

    async fn start(path: &Path, options: Options, failures: SyncFailures) -> Result<Self> {
        // So that its folder has a name, which is asked for its free room.
        let path = &std::path::absolute(path).map_err(|error| Error::Other(error.to_string()))?;
        let file = path.clone();
        let write = options.clone();
        let opened = tokio::task::spawn_blocking(move || open_parts(&file, &write, failures)).await;
        let LogParts {
            conn,
            checkpoints,
            checkpointer,
            journal,
            files,
            reserve,
            last_seq,
        } = opened.map_err(|error| Error::Other(error.to_string()))??;
        let state = Arc::new(LogState::new(last_seq));
        let reader = options.open_read_pool(path, READERS).await?;
        let searcher = options.open_read_pool(path, SEARCHERS).await?;
        let inbox = Arc::new(Inbox::default());
        let writer = Writer::new(
            checkpoints,
            Arc::clone(&inbox),
            Arc::clone(&state),
            journal,
            files.clone(),
            reserve,
            options.durability,
        );
        let tasks = TaskTracker::new();
        tasks.spawn_blocking(move || writer.run(conn));
        tasks.spawn_blocking(move || checkpointer.run());
        tasks.close();
        let writer = WriterHandle::new(
            inbox,
            options.max_queued_operations,
            options.max_queued_bytes,
        );
        Ok(Self {
            writer,
            reader,
            searcher,
            state,
            files,
            claim_lock: Mutex::new(()),
            tasks,
        })
    }

    /// Returns the pool of readers once the tables have every operation that was acknowledged
    /// before this call.
    async fn flushed_reader(&self) -> Result<&SqlitePool> {
        if self.state.has_pending() {
            self.run(Work::Flush).await?;
        }
        Ok(&self.reader)
    }

    /// Submits a write that has no effect, and is reported as fenced, once its lease was ended or
    /// taken over.
    async fn submit_under_lease(&self, work: impl Into<Work>) -> Result<LeasedWriteOutcome> {
        self.writer.submit(work).await?.into_leased_write()
    }

    async fn decide(&self, tenant: &Tenant, id: &MessageId, decision: Decision) -> Result<()> {
        let tenant = tenant.clone();
        let id = id.clone();
        let decide = Task::new(move |tx| operator_decision::decide(tx, &tenant, &id, &decision));
        self.run(decide.making_claimable()).await
    }

    /// Submits work without a result, and waits until it is done.
    async fn run(&self, work: impl Into<Work>) -> Result<()> {
        match self.writer.submit(work).await? {
            Effect::Done => Ok(()),
            Effect::Refused(error) => Err(error),
            other => Err(other.unexpected()),
        }
    }
}

/// Parts of an open log.
struct LogParts {
    conn: Connection,
    checkpoints: CheckpointHandle,
    checkpointer: Checkpointer,
    journal: Journal,
    files: OpenFiles,
    reserve: Reserve,
    last_seq: i64,
}

/// Opens the file and the files beside it. Blocks the thread.
fn open_parts(path: &Path, options: &Options, failures: SyncFailures) -> Result<LogParts> {
    let mut conn = options.open_writer(path)?;
    schema::migrate(&mut conn)?;
    let journal = Journal::open(&conn, path, options, &failures)?;
    let last_seq = schema::last_seq(&conn)?;
    let (checkpoints, checkpointer) = checkpoint::start(&conn, path, options, failures)?;
    let files = OpenFiles::open(&[
        path.to_owned(),
        journal::path_beside(path),
        write_ahead_log_path(path),
    ]);
    let reserve = Reserve::open(path);
    Ok(LogParts {
        conn,
        checkpoints,
        checkpointer,
        journal,
        files,
        reserve,
        last_seq,
    })
}

/// Returns the path of the write-ahead log of a file.
fn write_ahead_log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

#[async_trait::async_trait]
impl DeliveryStore for SqliteLog {
    async fn append(&self, message: NewMessage) -> Result<AppendOutcome> {
        self.writer
            .try_submit(Work::Append(Box::new(message)))
            .await?
            .into_appended()
    }

    async fn append_attempted(&self, messages: Vec<Arc<AttemptedMessage>>) -> Result<()> {
        let rows = messages
            .into_iter()
            .map(AttemptedRow::new)
            .collect::<Result<_, _>>()?;
        self.writer
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
        self.submit_under_lease(Work::StoreStep(Box::new(checkpoint)))
            .await
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedMessage>> {
        let _lock = self.claim_lock.lock().await;
        claim::claim(self.flushed_reader().await?, &self.writer, claim).await
    }

    async fn waiting(&self) -> Result<Vec<Waiting>> {
        claim::waiting(self.flushed_reader().await?).await
    }

    async fn backlog(&self) -> Result<Vec<Backlog>> {
        backlog::backlog(self.flushed_reader().await?).await
    }

    fn claimable(&self) -> watch::Receiver<u64> {
        self.state.claimable()
    }

    async fn open_lease(&self, owner: &BootId, node: &NodeId, ttl: Duration) -> Result<NodeLease> {
        let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let lease = NodeLease {
            owner: owner.clone(),
            node: node.clone(),
            known: LeaseState::default(),
        };
        let owner = owner.clone();
        let node = node.clone();
        let open = Task::new(move |tx| lease::open(tx, &owner, &node, ttl_ms));
        self.run(open.making_claimable()).await?;
        Ok(lease)
    }

    /// Never reports a restored log: once another file is at the path of the open one, the writer
    /// refuses every operation.
    async fn renew_lease(&self, lease: &mut NodeLease) -> Result<RenewalOutcome> {
        let owner = lease.owner.clone();
        let renew = Task::new(move |tx| lease::renew(tx, &owner));
        match self.submit_under_lease(renew).await? {
            LeasedWriteOutcome::Done => Ok(RenewalOutcome::Done),
            LeasedWriteOutcome::Fenced => Ok(RenewalOutcome::Ended),
        }
    }

    async fn hand_back(&self, owner: &BootId) -> Result<()> {
        let owner = owner.clone();
        let end = Task::new(move |tx| lease::hand_back(tx, &owner));
        self.run(end.making_claimable()).await
    }

    async fn end_flow(&self, flow_id: &FlowId, failure: &Failure) -> Result<FlowEnd> {
        let id = flow_id.clone();
        let failure = failure.clone();
        let end = Task::new(move |tx| end::end_flow(tx, &id, &failure));
        let ended = self.writer.submit(end).await?.into_count()?;
        Ok(match ended {
            0 if end::is_unfinished(self.flushed_reader().await?, flow_id).await? => FlowEnd::Held,
            0 => FlowEnd::Complete,
            _ => FlowEnd::Partial,
        })
    }

    async fn probe(&self) -> Result<()> {
        self.run(Work::Probe).await
    }
}

#[async_trait::async_trait]
impl MessageLog for SqliteLog {
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
        // On a full disk there may be no room for the pending writes. Retention makes it.
        if let Err(error) = self.flushed_reader().await {
            tracing::warn!(%error, "retention begins without the pending writes of the journal");
        }
        retain::retain(&self.reader, &self.writer, older_than).await
    }

    async fn retain_flows(&self, flows: &[FlowId], older_than: Timestamp) -> Result<u64> {
        let reader = self.flushed_reader().await?;
        retain::retain_flows(reader, &self.writer, flows, older_than).await
    }

    async fn is_empty(&self) -> Result<bool> {
        Ok(crate::message::read::is_empty(self.flushed_reader().await?).await?)
    }

    async fn ping(&self) -> Result<()> {
        // A log that is closed no longer has files.
        if !self.reader.is_closed() {
            self.files.check_paths()?;
        }
        read::ping(&self.reader).await
    }

    fn stats(&self) -> Stats {
        self.state.stats()
    }

    async fn close(&self) {
        // Readers first: they would keep the write-ahead log from being emptied.
        self.reader.close().await;
        self.searcher.close().await;
        // Fails only when it is closed already.
        let _ = self.writer.submit(Work::Close).await;
        self.tasks.wait().await;
    }
}
