//! Write-ahead journal in front of the tables.
//!
//! Most messages have no key that another message could share, and most changes end a message
//! without an ordering key. [`Journal::append`] writes a batch of them as one short record and
//! syncs it; then the writer answers their callers. Until the tables have them they are
//! [`PendingWrites`]. The writer applies these when it is idle, when many are pending, when the
//! oldest has waited for 100 ms, when a reader asks, and at the start of each transaction except a
//! deletion on a full disk, so that code inside a transaction need not know of the journal. Readers
//! use `SqliteLog::flushed_reader`. The commit that applies the pending writes need not be synced,
//! because the journal has them on disk.
//!
//! # States
//!
//! ```text
//!            append                      commit without sync
//!  +-------+ --------------> +---------+ --------------> +----------+
//!  | clean |                 | pending |                 | unsynced |
//!  +-------+ <-------------- +---------+ <-------------- +----------+
//!      ^     synced commit     |     ^       append           |
//!      |                       +-----+                        |
//!      |              append, or a commit that failed         |
//!      +------------------------------------------------------+
//!                          synced commit
//!
//!  any state -- a write or a sync fails --> disabled, until the next start
//! ```
//!
//! If the file cannot grow because the disk is full, the journal stays in its state. The operations
//! of that record go to the tables.
//!
//! - *clean*: the tables have everything on disk. The next record goes to the start of the file.
//! - *pending*: the file has records that the tables lack. After a commit that failed, the next
//!   attempt follows a backoff.
//! - *unsynced*: the tables have everything, by a commit that may not be on disk yet. The file
//!   keeps its records.
//! - *disabled*: a write or a sync of the journal has failed, or a sync of the tables. Every
//!   operation goes straight to the tables, in a synced commit. The file stays as it is for the
//!   recovery of the next start.
//!
//! No field has the state: it follows from `file`, `failures`, `pending` and `tables_unsynced`. A
//! log with relaxed durability has no journal.
//!
//! A commit counts as synced only if it wrote something, because SQLite does not sync a commit
//! that wrote nothing.

mod file;
mod headroom;
mod pending;
mod policy;
mod record;
mod recovery;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use self::file::{AppendError, JournalFile};
#[cfg(feature = "fuzz")]
pub(super) use self::file::{JournalContents, encode, parse};
use self::headroom::Headroom;
pub(super) use self::pending::PendingWrites;
use self::policy::ApplyPolicy;
use self::record::JournalRecord;
#[cfg(feature = "fuzz")]
pub(super) use self::record::reencode;
pub(super) use self::recovery::path_beside;
use super::change;
use super::failpoints;
use super::inbox::Operation;
use super::operation::{Effect, Work};
use super::options::{BUSY_TIMEOUT, CommitDurability, Durability, Options};
use super::statements::Statements;
use super::sync_failures::SyncFailures;
use crate::append::NewRow;
use crate::change::Change;
use crate::{Error, LeasedWriteOutcome, NewMessage};

const FIND_ID: &str = "SELECT 1 FROM messages WHERE id = ?";

/// Journal of a log, for the thread that writes.
pub(super) struct Journal {
    /// Open file; `None` where every operation goes straight to the tables.
    file: Option<JournalFile>,
    /// Failed syncs of the tables. After one the journal takes no more records. Its file is kept,
    /// because the failed sync may have lost operations from the tables.
    failures: SyncFailures,
    headroom: Headroom,
    /// Buffer of the record that is being written.
    record: JournalRecord,
    pending: PendingWrites,
    policy: ApplyPolicy,
    /// True while the tables have something that only the file has on disk.
    tables_unsynced: bool,
}

/// Outcome of [`Journal::append`].
pub(super) enum JournalOutcome {
    /// All operations are on disk.
    Written(JournalWrite),
    /// The operations have to go to the tables: the journal does not support one of them, or cannot
    /// be written now.
    UseTables,
    /// The file is full. The caller flushes with a synced commit, and appends again. If nothing was
    /// pending, the second append has this outcome too; then the operations go to the tables, and
    /// that commit makes room.
    FlushFirst,
}

/// Entry of a record: the work of one operation that may go to the journal.
enum JournalEntry<'w> {
    /// New message without keys.
    Message(&'w NewMessage),
    /// Final outcome of a message without an ordering key.
    FinalSettlement(&'w Change),
}

/// Results of a batch of operations, in their order.
pub(super) struct JournalWrite {
    pub results: Vec<OperationResult>,
    /// Last sequence number that was taken.
    pub last_seq: i64,
}

/// Result of one operation.
pub(super) struct OperationResult {
    pub effect: Effect,
    /// Sequence number that the operation took; `None` when it changed nothing.
    pub seq: Option<i64>,
}

impl Journal {
    /// Applies the journal that an earlier process left beside the file at `path`, and creates a
    /// new one. If its operations cannot be written to the tables now, they stay pending, and no
    /// journal is used until the next start.
    ///
    /// # Errors
    /// The tables or the former journal cannot be read.
    pub fn open(
        conn: &Connection,
        path: &Path,
        options: &Options,
        failures: &SyncFailures,
    ) -> Result<Self, Error> {
        let file_path = path_beside(path);
        let pending = recovery::recover(conn, &file_path, failures)?;
        let is_wanted = options.durability == Durability::Full && !options.without_journal;
        let file = if is_wanted && pending.is_empty() {
            // A full disk does not prevent a start: retention may make room.
            recovery::create(conn, &file_path, pending.last_record_number, failures)
                .inspect_err(|error| {
                    tracing::error!(
                        %error,
                        "the message log has no journal: its tables get everything at once",
                    );
                })
                .ok()
        } else {
            None
        };
        let policy = if pending.is_empty() {
            ApplyPolicy::default()
        } else {
            ApplyPolicy::after_failure(Instant::now())
        };
        Ok(Self {
            file,
            failures: failures.clone(),
            headroom: Headroom::new(path),
            record: JournalRecord::new(),
            pending,
            policy,
            tables_unsynced: false,
        })
    }

    pub fn pending(&self) -> &PendingWrites {
        &self.pending
    }

    /// Returns whether pending and new operations are on disk in the file.
    pub fn is_active(&self) -> bool {
        self.file.is_some() && !self.failures.any()
    }

    /// Returns whether it is time to apply the pending writes.
    pub fn is_due(&self, now: Instant) -> bool {
        self.policy.is_due(self.pending.len(), now)
    }

    /// Returns how long the pending writes may wait for more operations; `None` when there are
    /// none.
    pub fn idle_timeout(&self, now: Instant) -> Option<Duration> {
        (!self.pending.is_empty()).then(|| self.policy.idle_timeout(now))
    }

    /// Returns the time until the next attempt to apply the pending writes for a reader.
    pub fn reader_retry_delay(&self, now: Instant) -> Duration {
        if self.pending.is_empty() {
            Duration::ZERO
        } else {
            self.policy.reader_retry_delay(now)
        }
    }

    /// Returns how long the next transaction waits for another program that has locked the tables.
    pub fn lock_timeout(&self) -> Duration {
        self.policy.lock_timeout(BUSY_TIMEOUT)
    }

    /// Writes all operations, or none, as one record and syncs it. Sequence numbers continue after
    /// `last_seq`.
    pub fn append(
        &mut self,
        statements: &Statements<'_>,
        operations: &[Operation],
        last_seq: i64,
    ) -> rusqlite::Result<JournalOutcome> {
        let Some(file) = self.file.as_mut().filter(|_| !self.failures.any()) else {
            return Ok(JournalOutcome::UseTables);
        };
        let entries: Option<Vec<_>> = operations
            .iter()
            .map(|operation| operation.work.as_journal_entry())
            .collect();
        let Some(entries) = entries else {
            return Ok(JournalOutcome::UseTables);
        };
        if !self.headroom.is_sufficient(statements.conn())? {
            return Ok(JournalOutcome::UseTables);
        }
        self.record.clear();
        let record = &mut self.record;
        let pending = &self.pending;
        let write = statements
            .in_read_transaction(|conn| encode_batch(record, pending, conn, &entries, last_seq));
        let Some(write) = write? else {
            return Ok(JournalOutcome::UseTables);
        };
        if self.record.is_empty() {
            return Ok(JournalOutcome::Written(write));
        }
        let bytes = self.record.bytes_mut();
        let length = bytes.len();
        if !file.has_room_for(length) {
            return Ok(if JournalFile::can_hold(length) {
                JournalOutcome::FlushFirst
            } else {
                JournalOutcome::UseTables
            });
        }
        failpoints::before_commit(operations);
        match file.append(bytes) {
            Ok(number) => self.pending.last_record_number = number,
            Err(AppendError::NoSpace(error)) => {
                tracing::debug!(%error, "the message log's journal cannot grow");
                return Ok(JournalOutcome::UseTables);
            }
            Err(AppendError::Broken(error)) => {
                tracing::error!(
                    %error,
                    "the message log's journal cannot be written: its tables get everything at \
                     once",
                );
                // The failed record may be on disk with this number. The number is skipped, so that
                // recovery does not apply the record again.
                self.pending.skip_record_number();
                self.file = None;
                return Ok(JournalOutcome::UseTables);
            }
        }
        failpoints::after_commit(operations);
        self.policy.add(length);
        Ok(JournalOutcome::Written(write))
    }

    /// Keeps a written operation until the tables have it.
    pub fn add_pending(&mut self, work: Work, seq: Option<i64>) {
        match (work, seq) {
            (Work::Append(message), Some(seq)) => self.pending.add_message(seq, message),
            (Work::Settle(change), Some(event_seq)) => {
                self.pending.add_settlement(event_seq, change)
            }
            _ => {}
        }
    }

    /// Forgets the pending writes after a commit that applied them. `durability` is that of the
    /// commit, and `None` if the commit changed no page: SQLite syncs nothing then.
    pub fn note_applied(&mut self, durability: Option<CommitDurability>) {
        self.pending.clear();
        self.policy.record_success();
        let Some((file, durability)) = self.file.as_mut().zip(durability) else {
            return;
        };
        self.tables_unsynced = durability == CommitDurability::Deferred;
        if !self.tables_unsynced {
            file.restart();
        }
    }

    /// Notes that the pending writes could not be written to the tables. Returns whether that
    /// attempt was due, and not only asked for by a caller.
    pub fn note_apply_failure(&mut self, now: Instant) -> bool {
        self.policy.record_failure(now)
    }

    /// Makes sure that the last commit writes something, and so is synced, before the file is
    /// removed.
    pub fn prepare_to_close(&mut self) {
        if self.tables_unsynced {
            self.pending.force_applied_number_write();
        }
    }

    /// Removes the file if the tables have everything on disk.
    pub fn close(self) {
        if self.pending.is_empty()
            && !self.tables_unsynced
            && !self.failures.any()
            && let Some(Err(error)) = self.file.map(JournalFile::remove)
        {
            tracing::warn!(
                %error,
                "the message log's journal, which is empty, could not be removed",
            );
        }
    }
}

/// Encodes the entries into `record`, and returns their results. Returns `None` when only the
/// tables can decide on one of them.
fn encode_batch(
    record: &mut JournalRecord,
    pending: &PendingWrites,
    conn: &Connection,
    entries: &[JournalEntry<'_>],
    last_seq: i64,
) -> rusqlite::Result<Option<JournalWrite>> {
    let mut write = JournalWrite {
        results: Vec::with_capacity(entries.len()),
        last_seq,
    };
    let mut ids = Vec::new();
    let mut settled = Vec::new();
    for entry in entries {
        let next = write.last_seq + 1;
        let result = match *entry {
            JournalEntry::Message(message) => {
                let hash = pending.hash(&message.id);
                if ids.contains(&hash) || pending.may_contain(hash) || is_in_tables(conn, message)?
                {
                    return Ok(None);
                }
                ids.push(hash);
                record.push_message(next, message);
                OperationResult {
                    effect: Effect::Appended(NewRow::new(message, next).outcome()),
                    seq: Some(next),
                }
            }
            JournalEntry::FinalSettlement(change)
                if !settled.contains(&change.message_seq) && !is_fenced(pending, conn, change)? =>
            {
                settled.push(change.message_seq);
                record.push_settlement(next, change);
                OperationResult {
                    effect: Effect::Settled(LeasedWriteOutcome::Done),
                    seq: Some(next),
                }
            }
            JournalEntry::FinalSettlement(_) => OperationResult {
                effect: Effect::Settled(LeasedWriteOutcome::Fenced),
                seq: None,
            },
        };
        write.last_seq = result.seq.unwrap_or(write.last_seq);
        write.results.push(result);
    }
    Ok(Some(write))
}

fn is_in_tables(conn: &Connection, message: &NewMessage) -> rusqlite::Result<bool> {
    conn.prepare_cached(FIND_ID)?.exists([message.id.as_str()])
}

/// Returns whether `change` is fenced: the message has another owner or token than those on which
/// it relies. A lease that has only expired does not fence.
fn is_fenced(
    pending: &PendingWrites,
    conn: &Connection,
    change: &Change,
) -> rusqlite::Result<bool> {
    match pending.is_fenced(change) {
        Some(is_fenced) => Ok(is_fenced),
        None => change::is_fenced(conn, change),
    }
}

impl Work {
    /// Returns the work as an entry of the journal; `None` if only the tables take it.
    fn as_journal_entry(&self) -> Option<JournalEntry<'_>> {
        match self {
            Self::Append(message)
                if message.dedupe_keys.is_empty() && message.ordering_key.is_none() =>
            {
                Some(JournalEntry::Message(message))
            }
            Self::Settle(change) if change.is_final_without_ordering_key() => {
                Some(JournalEntry::FinalSettlement(change))
            }
            _ => None,
        }
    }
}
