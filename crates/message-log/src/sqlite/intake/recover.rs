//! What a process that died left in its journal, and the journal of the next one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Unfolded;
use super::lot;
use crate::Error;
use crate::sqlite::failure::Kind;
use crate::sqlite::journal::{self, Journal, Left};
use crate::sqlite::maintenance;
use crate::sqlite::statements::Statements;
use crate::sqlite::syncs::Syncs;
use crate::sqlite::transaction::{self, Commit};

const STANDING: &str = "
SELECT (SELECT value FROM counters WHERE name = 'journal_salt'), (SELECT value FROM counters WHERE name = 'folded_lots')";

const SET_SALT: &str = "UPDATE counters SET value = ? WHERE name = 'journal_salt'";

/// The journal of a file.
pub(super) fn beside(file: &Path) -> PathBuf {
    with(file, "-intake")
}

/// Puts what the tables do not have yet into them, on disk. Gives what they do not take for now, because the disk is full or
/// another program holds the file: then it is in the journal alone as before.
pub(super) fn recover(conn: &Connection, file: &Path, syncs: &Syncs) -> Result<Unfolded, Error> {
    let (salt, folded): (i64, i64) = conn.query_row(STANDING, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let nothing = Unfolded::after(folded);
    let Some(mut left) = journal::read(file).map_err(|error| unreadable(file, &error))? else { return Ok(nothing) };
    let known = left.salt == salt;
    left.records.retain(|(number, _)| !known || *number > folded);
    let Some((first, _)) = left.records.first() else { return Ok(nothing) };
    // The tables of another time, as from a backup: nothing of it fits between what they have and what comes.
    if !known || *first != folded + 1 {
        let aside = with(file, &format!(".set-aside-{}", uuid::Uuid::now_v7().simple()));
        std::fs::rename(file, &aside).map_err(|error| unreadable(file, &error))?;
        tracing::warn!(file = %aside.display(), "a journal that does not belong to this message log was set aside");
        return Ok(nothing);
    }
    let records = left.records.len();
    let mut unfolded = unfolded(nothing, left)?;
    let statements = Statements::new(conn);
    let last_seq = crate::sqlite::schema::last_seq(conn)?;
    match transaction::run(&statements, Some(&unfolded), &[], last_seq, Commit::OnDisk).0 {
        Ok(_) => {
            tracing::info!(lots = records, messages = unfolded.len(), "took up what the last process had acknowledged");
            unfolded.clear();
        }
        Err(error) if Kind::of(&error) != Kind::Operation => {
            syncs.note(&error);
            tracing::error!(%error, "what the last process had acknowledged stays in its journal until the tables take it");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(unfolded)
}

fn unfolded(mut unfolded: Unfolded, left: Left) -> Result<Unfolded, Error> {
    for (number, text) in left.records {
        let lot = lot::read(text)?;
        for (seq, message) in lot.arrivals {
            unfolded.came(seq, Box::new(message));
        }
        for (event, change) in lot.ends {
            unfolded.ended(event, Box::new(change));
        }
        unfolded.lots = number;
    }
    Ok(unfolded)
}

/// Begins a journal that the tables know for theirs. They have all that the one before it has.
pub(super) fn begin(conn: &Connection, file: &Path, lots: i64, syncs: &Syncs) -> Result<Journal, Error> {
    let note = |error: &rusqlite::Error| syncs.note(error);
    // A process that ended well leaves none. One that was killed may have put something into the tables, relying on its journal
    // for the sync; or a sync of its tables failed.
    if file.try_exists().map_err(|error| unreadable(file, &error))? {
        maintenance::move_whole(conn).inspect_err(note)?;
        // Tables with another number would not know it any more.
        journal::remove(file).map_err(|error| unreadable(file, &error))?;
    }
    // 62 bits of it are random.
    let salt = uuid::Uuid::now_v7().as_u64_pair().1.cast_signed();
    conn.execute(SET_SALT, [salt]).inspect_err(note)?;
    Journal::create(file, salt, lots).map_err(|error| unreadable(file, &error))
}

fn with(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    PathBuf::from(name)
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    Error::Unavailable(format!("{}: {error}", file.display()))
}
