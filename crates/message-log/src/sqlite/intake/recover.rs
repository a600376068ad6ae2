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
use crate::sqlite::schema;
use crate::sqlite::statements::Statements;
use crate::sqlite::syncs::Syncs;
use crate::sqlite::transaction::{self, Commit};

const STANDING: &str = "
SELECT (SELECT value FROM counters WHERE name = 'journal_salt'), (SELECT value FROM counters WHERE
    name = 'folded_lots')";

/// The last place that a message or event in the tables has.
const TAKEN: &str = "
SELECT max((SELECT coalesce(max(seq), 0) FROM messages), (SELECT coalesce(max(seq), 0)
    FROM transitions))";

const SET_SALT: &str = "UPDATE counters SET value = ? WHERE name = 'journal_salt'";

/// The journal of a file.
pub(in crate::sqlite) fn beside(file: &Path) -> PathBuf {
    with(file, "-intake")
}

/// Puts what the tables do not have yet into them, on disk. Gives what they do not take for now,
/// because the disk is full or another program holds the file: then it is in the journal alone as
/// before.
pub(super) fn recover(conn: &Connection, file: &Path, syncs: &Syncs) -> Result<Unfolded, Error> {
    let (salt, folded): (i64, i64) =
        conn.query_row(STANDING, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let nothing = Unfolded::after(folded);
    let mut own =
        match journal::read(file, salt, folded).map_err(|error| unreadable(file, &error))? {
            Left::Nothing | Left::Other { is_empty: true } => return Ok(nothing),
            Left::Other { is_empty: false } => {
                let file = set_aside(file)?;
                tracing::warn!(
                    file = %file.display(),
                    "a journal that does not belong to this message log was set aside",
                );
                return Ok(nothing);
            }
            Left::Damaged => {
                let file = set_aside(file)?;
                tracing::error!(
                    file = %file.display(),
                    "the journal of the message log is damaged, and nothing of it can be read",
                );
                return Ok(nothing);
            }
            Left::UnknownVersion => return Err(Error::UnknownJournal(file.display().to_string())),
            Left::Own(own) => own,
        };
    own.records.retain(|(number, _)| *number > folded);
    // The tables of another time, as from a backup: nothing of it fits between what they have and
    // what comes.
    if own
        .records
        .first()
        .is_some_and(|(first, _)| *first != folded + 1)
    {
        let file = set_aside(file)?;
        tracing::warn!(
            file = %file.display(),
            "a journal that does not belong to this message log was set aside",
        );
        return Ok(nothing);
    }
    let is_damaged = !own.is_header_whole || !own.behind.is_empty();
    own.records.append(&mut own.behind);
    let Some((last, _)) = own.records.last() else {
        return Ok(nothing);
    };
    let records = own.records.len();
    let lost = last - folded - i64::try_from(records).unwrap_or(i64::MAX);
    let mut unfolded = unfolded(nothing, own.records)?;
    let statements = Statements::new(conn);
    let last_seq = schema::last_seq(conn)?;
    let taken = conn.query_row(TAKEN, (), |row| row.get(0))?;
    if unfolded.make_way(taken, last_seq) {
        tracing::error!(
            messages = unfolded.len(),
            "another process wrote into this message log: what the last one had acknowledged gets \
             other places in it",
        );
    }
    match transaction::run(&statements, Some(&unfolded), &[], last_seq, Commit::OnDisk).0 {
        Ok(_) => {
            tracing::info!(
                lots = records,
                messages = unfolded.len(),
                "took up what the last process had acknowledged"
            );
            unfolded.clear();
            if is_damaged {
                let file = set_aside(file)?;
                tracing::error!(
                    file = %file.display(),
                    records.lost = lost,
                    records.taken = records,
                    "the journal of the message log is damaged: it was set aside, and what is \
                     whole of it was taken up",
                );
            }
        }
        Err(error) if Kind::of(&error) != Kind::Operation => {
            syncs.note(&error);
            tracing::error!(
                %error,
                "what the last process had acknowledged stays in its journal until the tables \
                 take it",
            );
        }
        Err(error) => return Err(error.into()),
    }
    Ok(unfolded)
}

/// Gives a journal another name, under which nobody reads it. Returns that.
fn set_aside(file: &Path) -> Result<PathBuf, Error> {
    let aside = with(
        file,
        &format!(".set-aside-{}", uuid::Uuid::now_v7().simple()),
    );
    std::fs::rename(file, &aside).map_err(|error| unreadable(file, &error))?;
    Ok(aside)
}

fn unfolded(mut unfolded: Unfolded, records: Vec<(i64, Vec<u8>)>) -> Result<Unfolded, Error> {
    for (number, text) in records {
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
pub(super) fn begin(
    conn: &Connection,
    file: &Path,
    lots: i64,
    syncs: &Syncs,
) -> Result<Journal, Error> {
    let note = |error: &rusqlite::Error| syncs.note(error);
    // A process that ended well leaves none. One that was killed may have put something into the
    // tables, relying on its journal for the sync; or a sync of its tables failed.
    if file
        .try_exists()
        .map_err(|error| unreadable(file, &error))?
    {
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
