//! The way in for what most messages are: they come, with no key that another one could have, and
//! they end. Both go to disk as one short record of the journal and are answered; the tables get
//! them a little later, many at a time, in a transaction that nobody waits for and that need not be
//! synced. Every other transaction begins with that, so that it finds what was answered before it.

mod lot;
mod pause;
mod recover;
mod room;
mod unfolded;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use self::lot::Lot;
#[cfg(feature = "fuzz")]
pub(super) use self::lot::rewritten;
use self::pause::Pause;
pub(super) use self::recover::beside;
use self::room::Room;
pub(super) use self::unfolded::Unfolded;
use super::append;
use super::journal::{Journal, Refused};
use super::operation::{Change, Effect, Operation, Work};
use super::options::{BUSY_TIMEOUT, Durability, Options};
use super::statements::Statements;
use super::syncs::Syncs;
use super::transaction::{self, Commit};
use crate::{Error, NewMessage, SettleOutcome};

/// So many messages and ends, or bytes of them, are put into the tables without waiting for more.
const MANY: usize = 256;
const MANY_BYTES: usize = 4 * 1024 * 1024;
/// When nothing came for so long they are put there too,
const IDLE: Duration = Duration::from_millis(5);
/// and after this time in any case.
const LONGEST: Duration = Duration::from_millis(100);

const FIND_ID: &str = "SELECT 1 FROM messages WHERE id = ?";
const FIND_HOLD: &str = "SELECT 1 FROM messages WHERE seq = ? AND token = ? AND owner = ?";

/// The writer's side of it.
pub(super) struct Intake {
    /// `None` where everything goes into the tables at once.
    journal: Option<Journal>,
    /// After one that failed the journal stays as it is for the next process: what the tables lost
    /// then is in it.
    syncs: Syncs,
    room: Room,
    /// The one that is being written; empty otherwise.
    lot: Lot,
    unfolded: Unfolded,
    /// Bytes of what is not in the tables.
    bytes: usize,
    /// When the oldest of it came.
    since: Option<Instant>,
    /// It could not be put into the tables, and is not tried again for some time, or for a moment
    /// if somebody waits.
    pause: Pause,
    /// The tables have something that is on disk in the journal alone.
    relies: bool,
}

/// What operations come to once the journal has the lot.
struct Draft {
    done: Vec<Done>,
    last_seq: i64,
}

/// An operation that is on disk.
pub(super) struct Done {
    pub effect: Effect,
    /// The place in the log's order that it took; none when it changed nothing.
    pub seq: Option<i64>,
}

/// What became of operations that were handed in.
pub(super) enum TakenIn {
    /// They are on disk, each with what it did; and the last place taken.
    Done(Vec<Done>, i64),
    /// They go into the tables.
    Not,
    /// There is room for them once the tables have, on disk, what is here.
    AfterFolding,
}

impl Intake {
    /// Puts what a process left behind into the tables of a file, and begins a journal beside it.
    ///
    /// What the tables do not take yet is kept for later, and then there is no journal: the file
    /// holds that alone until the next start. Errors when either cannot be read.
    pub fn open(
        conn: &Connection,
        path: &Path,
        options: &Options,
        syncs: &Syncs,
    ) -> Result<Self, Error> {
        let file = recover::beside(path);
        let unfolded = recover::recover(conn, &file, syncs)?;
        let journal = match options.durability {
            // A full disk is no reason not to start: retention may make room.
            Durability::Full if unfolded.is_empty() => {
                recover::begin(conn, &file, unfolded.lots, syncs)
                    .inspect_err(|error| {
                        tracing::error!(
                            %error,
                            "the message log has no journal: its tables get everything at once",
                        );
                    })
                    .ok()
            }
            Durability::Full | Durability::RelaxedMayLoseAckedMessages => None,
        };
        let mut pause = Pause::default();
        let mut since = None;
        if !unfolded.is_empty() {
            let now = Instant::now();
            pause.failed(now);
            since = Some(now);
        }
        let room = Room::of(path);
        let lot = Lot::new();
        let syncs = syncs.clone();
        Ok(Self {
            journal,
            syncs,
            room,
            lot,
            unfolded,
            bytes: 0,
            since,
            pause,
            relies: false,
        })
    }

    pub fn unfolded(&self) -> &Unfolded {
        &self.unfolded
    }

    /// Whether what is here, and what comes, is on disk before the tables have it there.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some() && !self.syncs.any_failed()
    }

    /// Whether it is time to put what is here into the tables.
    pub fn is_due(&self, now: Instant) -> bool {
        let many = self.unfolded.len() >= MANY || self.bytes >= MANY_BYTES;
        let old = self
            .since
            .is_some_and(|since| now.duration_since(since) >= LONGEST);
        (many || old) && self.pause.left(now).is_zero()
    }

    /// How long it may wait for more when nothing comes; `None` when there is nothing.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        (!self.unfolded.is_empty()).then_some(self.pause.left(now).max(IDLE))
    }

    /// How long one who waits for the tables to have it waits before they are tried.
    pub fn pause_of_one_who_waits(&self, now: Instant) -> Duration {
        if self.unfolded.is_empty() {
            Duration::ZERO
        } else {
            self.pause.left_for_one_who_waits(now)
        }
    }

    /// Has all operations on disk, or none, if they are such as need not be in the tables at once.
    pub fn take_in(
        &mut self,
        statements: &Statements<'_>,
        operations: &[Operation],
        last_seq: i64,
    ) -> rusqlite::Result<TakenIn> {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.syncs.any_failed()) else {
            return Ok(TakenIn::Not);
        };
        let plain = operations.iter().all(|operation| operation.work.is_plain());
        if !plain || !self.room.is_ample(statements.conn())? {
            return Ok(TakenIn::Not);
        }
        self.lot.clear();
        let lot = &mut self.lot;
        let unfolded = &self.unfolded;
        let draft = statements.reading(|conn| draft(lot, unfolded, conn, operations, last_seq));
        let Some(draft) = draft? else {
            return Ok(TakenIn::Not);
        };
        if self.lot.is_empty() {
            return Ok(TakenIn::Done(draft.done, last_seq));
        }
        let record = self.lot.record();
        let length = record.len();
        if !journal.takes(length) {
            return Ok(if Journal::could_take(length) {
                TakenIn::AfterFolding
            } else {
                TakenIn::Not
            });
        }
        transaction::before_commit(operations);
        match journal.append(record) {
            Ok(number) => self.unfolded.lots = number,
            Err(Refused::NoRoom(error)) => {
                tracing::debug!(%error, "the message log's journal cannot grow");
                return Ok(TakenIn::Not);
            }
            Err(Refused::Broken(error)) => {
                tracing::error!(
                    %error,
                    "the message log's journal cannot be written: its tables get everything at \
                     once",
                );
                // Should this lot be on disk after all, it counts as one that the tables have.
                self.unfolded.lots += 1;
                self.journal = None;
                return Ok(TakenIn::Not);
            }
        }
        transaction::after_commit(operations);
        self.bytes += length;
        self.since.get_or_insert_with(Instant::now);
        Ok(TakenIn::Done(draft.done, draft.last_seq))
    }

    /// Keeps an operation that was taken in until the tables have it.
    pub fn keep(&mut self, work: Work, done: &Done) {
        match (work, done.seq) {
            (Work::Append(message), Some(seq)) => self.unfolded.came(seq, message),
            (Work::Settle(change), Some(event)) => self.unfolded.ended(event, change),
            _ => {}
        }
    }

    /// The tables have everything, by a commit that wrote something or had nothing to write.
    pub fn folded(&mut self, commit: Commit, wrote: bool) {
        self.unfolded.clear();
        (self.bytes, self.since) = (0, None);
        self.pause.end();
        let Some(journal) = self.journal.as_mut().filter(|_| wrote) else {
            return;
        };
        self.relies = commit == Commit::Soon;
        if !self.relies {
            journal.begin_again();
        }
    }

    /// The tables did not take it; says whether that try was due, and not only asked for.
    pub fn put_off(&mut self, now: Instant) -> bool {
        self.pause.failed(now)
    }

    /// How long the next transaction waits for another program that holds the file.
    pub fn lock_patience(&self) -> Duration {
        self.pause.waits(BUSY_TIMEOUT)
    }

    /// The journal will go: there is something to put into the tables, so that the commit syncs
    /// what they rely on it for.
    pub fn prepare_to_close(&mut self) {
        if self.relies {
            self.unfolded.skip_a_lot();
        }
    }

    /// Leaves nothing beside the tables once they have everything on disk.
    pub fn close(self) {
        if self.unfolded.is_empty()
            && !self.relies
            && !self.syncs.any_failed()
            && let Some(Err(error)) = self.journal.map(Journal::remove)
        {
            tracing::warn!(
                %error,
                "the message log's journal, which is empty, could not be removed",
            );
        }
    }
}

/// `None` when one of the operations has to be judged by the tables.
fn draft(
    lot: &mut Lot,
    unfolded: &Unfolded,
    conn: &Connection,
    operations: &[Operation],
    last_seq: i64,
) -> rusqlite::Result<Option<Draft>> {
    let mut draft = Draft {
        done: Vec::with_capacity(operations.len()),
        last_seq,
    };
    let mut ids = Vec::new();
    let mut ended = Vec::new();
    for operation in operations {
        let next = draft.last_seq + 1;
        let done = match &operation.work {
            Work::Append(message) => {
                let hash = unfolded.hash(&message.id);
                if ids.contains(&hash) || unfolded.may_have(hash) || is_in_tables(conn, message)? {
                    return Ok(None);
                }
                ids.push(hash);
                lot.arrival(next, message);
                Done {
                    effect: Effect::Appended(append::appended(message, next)),
                    seq: Some(next),
                }
            }
            Work::Settle(change)
                if !ended.contains(&change.seq) && is_held(unfolded, conn, change)? =>
            {
                ended.push(change.seq);
                lot.end(next, change);
                Done {
                    effect: Effect::Settled(SettleOutcome::Done),
                    seq: Some(next),
                }
            }
            _ => Done {
                effect: Effect::Settled(SettleOutcome::Fenced),
                seq: None,
            },
        };
        draft.last_seq = done.seq.unwrap_or(draft.last_seq);
        draft.done.push(done);
    }
    Ok(Some(draft))
}

fn is_in_tables(conn: &Connection, message: &NewMessage) -> rusqlite::Result<bool> {
    conn.prepare_cached(FIND_ID)?.exists([message.id.as_str()])
}

/// Whether the lease that a change was decided on is good.
fn is_held(unfolded: &Unfolded, conn: &Connection, change: &Change) -> rusqlite::Result<bool> {
    if let Some(held) = unfolded.holds(change) {
        return Ok(held);
    }
    let hold = params![change.seq, change.from_token, change.from_owner.as_str()];
    conn.prepare_cached(FIND_HOLD)?.exists(hold)
}

impl Work {
    /// A message that no other one can be a repeat of or stand behind, or the end of such a one.
    fn is_plain(&self) -> bool {
        match self {
            Self::Append(message) => message.dedupe.is_empty() && message.ordering_key.is_none(),
            Self::Settle(change) => change.is_final() && !change.ordered,
            _ => false,
        }
    }
}
