//! Recovery of the operations that an earlier process left in its journal, and creation of the next
//! journal.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::file::{self, JournalContents, JournalFile, RawRecord};
use super::{PendingWrites, record};
use crate::sqlite::failure::FailureKind;
use crate::sqlite::maintenance;
use crate::sqlite::options::CommitDurability;
use crate::sqlite::schema;
use crate::sqlite::statements::Statements;
use crate::sqlite::sync_failures::SyncFailures;
use crate::sqlite::transaction;
use crate::{Error, Result};

const COUNTERS: &str = "
SELECT (SELECT value FROM counters WHERE name = 'journal_salt'), (SELECT value FROM counters WHERE
    name = 'folded_lots')";

/// Suffix of the file of the journal after the path of the log. Historic name.
const FILE_SUFFIX: &str = "-intake";

const SET_SALT: &str = "UPDATE counters SET value = ? WHERE name = 'journal_salt'";

/// Records of a former journal that the tables lack.
struct UnappliedRecords {
    records: Vec<RawRecord>,
    is_damaged: bool,
}

/// Returns the path of the journal of the log in `file`.
pub(in crate::sqlite) fn path_beside(file: &Path) -> PathBuf {
    with_suffix(file, FILE_SUFFIX)
}

/// Applies the journal at `path` to the tables, in a synced commit. Returns the operations that
/// cannot be written to the tables now, because the disk is full or failed, or the file is locked,
/// read-only or damaged. These stay in the journal.
pub(super) fn recover(
    conn: &Connection,
    path: &Path,
    failures: &SyncFailures,
) -> Result<PendingWrites> {
    let (salt, applied): (i64, i64) =
        conn.query_row(COUNTERS, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let pending = PendingWrites::empty_at(applied);
    let Some(UnappliedRecords {
        records,
        is_damaged,
    }) = read_unapplied(path, salt, applied)?
    else {
        return Ok(pending);
    };
    let count = records.len();
    let mut pending = decode_into(pending, records)?;
    let lost = pending.last_record_number - applied - i64::try_from(count).unwrap_or(i64::MAX);
    let last_seq = schema::last_seq(conn)?;
    let taken = conn.query_row(schema::MAX_SEQ_IN_TABLES, (), |row| row.get(0))?;
    if pending.renumber(taken, last_seq) {
        tracing::error!(
            writes = pending.len(),
            "another process wrote into this message log: operations that the last \
             process had acknowledged get new sequence numbers",
        );
    }
    match commit(&Statements::new(conn), &pending, last_seq) {
        Ok(()) => {
            tracing::info!(
                records = count,
                writes = pending.len(),
                "recovered the operations that the last process had acknowledged"
            );
            pending.clear();
            if is_damaged {
                let aside = set_aside(path)?;
                tracing::error!(
                    file = %aside.display(),
                    records.lost = lost,
                    records.taken = count,
                    "the journal of the message log is damaged: it was set aside, and its valid \
                     records were recovered",
                );
            }
        }
        Err(error) if FailureKind::from_error(&error) != FailureKind::Operation => {
            failures.record_if_fsync_error(&error);
            tracing::error!(
                %error,
                "operations that the last process acknowledged stay in its journal until the \
                 tables take them",
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(pending)
}

/// Reads the records that the tables lack; `None` when there are none. A file that is not the
/// journal of the tables is set aside.
fn read_unapplied(path: &Path, salt: i64, applied: i64) -> Result<Option<UnappliedRecords>> {
    let contents = file::read(path, salt, applied).map_err(|error| unreadable(path, &error))?;
    let own = match contents {
        JournalContents::Missing | JournalContents::Foreign { is_empty: true } => return Ok(None),
        JournalContents::Foreign { is_empty: false } => {
            set_foreign_aside(path)?;
            return Ok(None);
        }
        JournalContents::Damaged => {
            let aside = set_aside(path)?;
            tracing::error!(
                file = %aside.display(),
                "the journal of the message log is damaged, and no record of it can be read",
            );
            return Ok(None);
        }
        JournalContents::UnknownVersion => {
            return Err(Error::UnknownJournal(path.display().to_string()));
        }
        JournalContents::Own(own) => own,
    };
    let is_damaged = !own.is_header_valid || !own.salvaged.is_empty();
    let mut records = own.records;
    records.retain(|record| record.number > applied);
    // If the first record does not follow the applied one, the tables are older, for example from a
    // backup.
    if records
        .first()
        .is_some_and(|first| first.number != applied + 1)
    {
        set_foreign_aside(path)?;
        return Ok(None);
    }
    records.extend(own.salvaged);
    Ok((!records.is_empty()).then_some(UnappliedRecords {
        records,
        is_damaged,
    }))
}

/// Commits the writes, synced.
fn commit(
    statements: &Statements<'_>,
    pending: &PendingWrites,
    last_seq: i64,
) -> rusqlite::Result<()> {
    transaction::run(statements, last_seq, CommitDurability::Synced, |tx| {
        pending.apply(tx)?;
        pending.hit_failpoint_before_commit();
        Ok(())
    })?;
    pending.hit_failpoint_after_commit();
    Ok(())
}

fn decode_into(mut pending: PendingWrites, records: Vec<RawRecord>) -> Result<PendingWrites> {
    for RawRecord { number, payload } in records {
        let decoded = record::decode(payload)?;
        for (seq, message) in decoded.messages {
            pending.add_message(seq, Box::new(message));
        }
        for (event_seq, change) in decoded.settlements {
            pending.add_settlement(event_seq, Box::new(change));
        }
        pending.last_record_number = number;
    }
    Ok(pending)
}

fn set_foreign_aside(path: &Path) -> Result<()> {
    let aside = set_aside(path)?;
    tracing::warn!(
        file = %aside.display(),
        "a journal that does not belong to this message log was set aside",
    );
    Ok(())
}

/// Renames a journal so that no start reads it again, and returns the new path.
fn set_aside(path: &Path) -> Result<PathBuf> {
    let aside = with_suffix(
        path,
        &format!(".set-aside-{}", uuid::Uuid::now_v7().simple()),
    );
    std::fs::rename(path, &aside).map_err(|error| unreadable(path, &error))?;
    Ok(aside)
}

/// Creates a journal whose salt the tables know. The tables must have everything of the former one.
pub(super) fn create(
    conn: &Connection,
    path: &Path,
    last_record_number: i64,
    failures: &SyncFailures,
) -> Result<JournalFile> {
    let record_failure = |error: &rusqlite::Error| failures.record_if_fsync_error(error);
    // A clean stop leaves no file. A process that was killed may have committed without a sync,
    // because the journal had the data, and a sync of its tables may have failed.
    if path
        .try_exists()
        .map_err(|error| unreadable(path, &error))?
    {
        maintenance::checkpoint_fully(conn).inspect_err(record_failure)?;
        // Removed before the salt changes: with another salt the next start would treat the records
        // as foreign.
        file::remove(path).map_err(|error| unreadable(path, &error))?;
    }
    // 62 bits of it are random.
    let salt = uuid::Uuid::now_v7().as_u64_pair().1.cast_signed();
    conn.execute(SET_SALT, [salt]).inspect_err(record_failure)?;
    JournalFile::create(path, salt, last_record_number).map_err(|error| unreadable(path, &error))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Unavailable(format!("{}: {error}", path.display()))
}
