//! A file of records, one after another, each on disk before anything in it is answered. It knows
//! nothing of what they say.
//!
//! Its room is filled with zeros once and then used over and over: a sync of bytes that have their
//! place on the disk writes those bytes alone, where one that makes a file longer writes the file
//! system's own notes too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"KNTLOTS1";
/// What a journal of any version begins with.
const MAGIC_OF_ALL: &[u8; 7] = b"KNTLOTS";
/// The header has a block of its own, which is written once.
const HEADER_BYTES: u64 = 4_096;
/// Number, length and checksum of a record come before what it says.
pub(super) const FRAME_BYTES: usize = 16;
/// The file grows by so much.
const GROWTH_BYTES: u64 = 1024 * 1024;
/// And no further than this: then it begins again.
const LIMIT_BYTES: u64 = 32 * 1024 * 1024;
/// What its room is filled with, a piece at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The file, open at its end.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    salt: i64,
    /// Where the next record goes.
    end: u64,
    /// So much of the file is filled.
    room: u64,
    /// Number of the last record. Each is the one before plus 1, so that what is left of an earlier
    /// turn is none.
    number: i64,
}

/// Why a record was not written.
#[derive(Debug)]
pub(super) enum Refused {
    /// The disk has no room for more. The file is as it was.
    NoRoom(io::Error),
    /// Nobody knows what stands in the file now.
    Broken(io::Error),
}

impl Refused {
    fn of_growing(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoRoom(error),
            _ => Self::Broken(error),
        }
    }
}

/// What a process left behind.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// No file, or one that was never finished.
    Nothing,
    /// What stands in a journal of the tables that it was read for.
    Own(Own),
    /// A journal of other tables, or of these at another time. It may have no record.
    Other { is_empty: bool },
    /// A file that was no journal, or is none any more.
    Damaged,
    /// A journal of another build.
    UnknownVersion,
}

/// The whole records of a journal, by their numbers, which grow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Own {
    /// Those from the begin of the file up to the first place that holds none.
    pub records: Vec<(i64, Vec<u8>)>,
    /// Those behind that place which the tables lack: they were written after it, so that it held a
    /// record once.
    pub behind: Vec<(i64, Vec<u8>)>,
    /// Whether the file begins as a journal of the tables does.
    pub is_header_whole: bool,
}

impl Journal {
    /// Makes the file. Its first record will have the number after `number`. Where it cannot be
    /// made whole there is none.
    pub fn create(path: &Path, salt: i64, number: i64) -> io::Result<Self> {
        Self::filled(path, salt, number).inspect_err(|_| {
            // It would hold room that the tables may need; to whoever opens it next it says
            // nothing.
            let _ = std::fs::remove_file(path);
        })
    }

    fn filled(path: &Path, salt: i64, number: i64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // It holds what messages hold, which is nobody else's.
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        let mut header = vec![0; usize::try_from(HEADER_BYTES).unwrap_or(0)];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&salt.to_le_bytes());
        file.write_all_at(&header, 0)?;
        let mut journal = Self {
            file,
            path: path.to_owned(),
            salt,
            end: HEADER_BYTES,
            room: HEADER_BYTES,
            number,
        };
        journal.grow()?;
        sync_name(path)?;
        Ok(journal)
    }

    /// Whether a record of so many bytes can be written before the file begins again.
    pub fn takes(&self, bytes: usize) -> bool {
        self.end.saturating_add(bytes as u64) <= LIMIT_BYTES
    }

    /// Whether one of so many can ever be written.
    pub fn could_take(bytes: usize) -> bool {
        HEADER_BYTES.saturating_add(bytes as u64) <= LIMIT_BYTES
    }

    /// Writes what `record` says after its first [`FRAME_BYTES`], which are the journal's to fill.
    /// Returns when it is on disk; gives its number.
    pub fn append(&mut self, record: &mut [u8]) -> Result<i64, Refused> {
        let number = self.number + 1;
        let (frame, says) = record.split_at_mut(FRAME_BYTES);
        let length = u32::try_from(says.len()).map_err(|error| Refused::NoRoom(too_long(error)))?;
        frame[..8].copy_from_slice(&number.to_le_bytes());
        frame[8..12].copy_from_slice(&length.to_le_bytes());
        frame[12..].copy_from_slice(&sum(self.salt, number, says).to_le_bytes());
        let end = self.end + record.len() as u64;
        while end > self.room {
            self.grow().map_err(Refused::of_growing)?;
        }
        self.file
            .write_all_at(record, self.end)
            .map_err(Refused::Broken)?;
        self.file.sync_data().map_err(Refused::Broken)?;
        (self.end, self.number) = (end, number);
        Ok(number)
    }

    /// Nothing in the file is needed any more: it is written from its start again.
    pub fn begin_again(&mut self) {
        self.end = HEADER_BYTES;
    }

    /// Whoever opens it next needs nothing of it.
    pub fn remove(self) -> io::Result<()> {
        remove(&self.path)
    }

    fn grow(&mut self) -> io::Result<()> {
        for from in (0..GROWTH_BYTES).step_by(ZEROS.len()) {
            self.file.write_all_at(&ZEROS, self.room + from)?;
        }
        self.file.sync_all()?;
        self.room += GROWTH_BYTES;
        Ok(())
    }
}

/// Leaves no file there, also when the power fails.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    sync_name(path)
}

/// Reads what stands in a file for tables that know journals by `salt` and have all records up to
/// the number `folded`.
pub(super) fn read(path: &Path, salt: i64, folded: i64) -> io::Result<Left> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
        Err(error) => return Err(error),
    };
    Ok(parse(&bytes, salt, folded))
}

/// Reads what the bytes of a file say, as [`read`] does.
pub(super) fn parse(bytes: &[u8], salt: i64, folded: i64) -> Left {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES as usize) else {
        return Left::Nothing;
    };
    let of_file = header[8..16]
        .try_into()
        .map(i64::from_le_bytes)
        .unwrap_or_default();
    let is_known = header.starts_with(MAGIC);
    let is_header_whole = is_known && of_file == salt;
    let (records, after) = records(rest, salt);
    let last = records.last().map_or(folded, |(last, _)| folded.max(*last));
    let behind = behind(after, salt, last);
    let has_news = !behind.is_empty() || records.last().is_some_and(|(last, _)| *last > folded);
    let is_blank = header.iter().all(|byte| *byte == 0);
    if is_header_whole || has_news && !is_of_another_version(header) {
        Left::Own(Own {
            records,
            behind,
            is_header_whole,
        })
    } else if is_known {
        Left::Other {
            is_empty: self::records(rest, of_file).0.is_empty(),
        }
    } else if is_of_another_version(header) {
        Left::UnknownVersion
    } else if is_blank && rest.iter().all(|byte| *byte == 0) {
        // The power failed while it was made.
        Left::Nothing
    } else {
        Left::Damaged
    }
}

/// Returns the bytes of a journal that has these records, from number 1 on.
#[cfg(feature = "fuzz")]
pub(super) fn bytes(salt: i64, records: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&salt.to_le_bytes());
    for (number, says) in (1_i64..).zip(records) {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(says.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&sum(salt, number, says).to_le_bytes());
        bytes.extend_from_slice(says);
    }
    bytes
}

/// Returns how many bytes the first record would have, were it one; 0 where there are fewer.
fn claimed_length(bytes: &[u8]) -> u64 {
    let length = bytes
        .get(8..12)
        .and_then(|length| length.try_into().ok())
        .map_or(0, u32::from_le_bytes);
    if (length as usize) < bytes.len() {
        u64::from(length)
    } else {
        0
    }
}

fn is_of_another_version(header: &[u8]) -> bool {
    header.starts_with(MAGIC_OF_ALL) && !header.starts_with(MAGIC)
}

/// Returns the records up to the first place that holds none, each with the number after the one
/// before, and the rest.
fn records(mut rest: &[u8], salt: i64) -> (Vec<(i64, Vec<u8>)>, &[u8]) {
    let mut records: Vec<(i64, Vec<u8>)> = Vec::new();
    while let Some((number, says, after)) = record(rest, salt)
        && records.last().is_none_or(|(last, _)| last + 1 == number)
    {
        records.push((number, says.to_vec()));
        rest = after;
    }
    (records, rest)
}

/// Returns the whole records of numbers after `last`, wherever they stand. Those of an earlier turn
/// have smaller numbers, and no journal holds more than its length has room for.
fn behind(mut rest: &[u8], salt: i64, last: i64) -> Vec<(i64, Vec<u8>)> {
    const MOST: i64 = (LIMIT_BYTES / FRAME_BYTES as u64).cast_signed();
    // What senders wrote may look like records everywhere: then no more is summed up than takes a
    // few seconds.
    let mut budget = 64 * LIMIT_BYTES;
    let mut found: Vec<(i64, Vec<u8>)> = Vec::new();
    while let Some((frame, _)) = rest.split_first_chunk::<8>() {
        let number = i64::from_le_bytes(*frame);
        let from = found.last().map_or(last, |(number, _)| *number);
        let is_possible = from < number && number <= last.saturating_add(MOST) && budget > 0;
        let whole = is_possible.then(|| record(rest, salt)).flatten();
        if is_possible && whole.is_none() {
            budget = budget.saturating_sub(claimed_length(rest));
        }
        rest = match whole {
            Some((number, says, after)) => {
                found.push((number, says.to_vec()));
                after
            }
            None => &rest[1..],
        };
    }
    found
}

/// The first record, what it says, and what comes after it.
fn record(bytes: &[u8], salt: i64) -> Option<(i64, &[u8], &[u8])> {
    let (frame, rest) = bytes.split_at_checked(FRAME_BYTES)?;
    let number = i64::from_le_bytes(frame[..8].try_into().ok()?);
    let length = usize::try_from(u32::from_le_bytes(frame[8..12].try_into().ok()?)).ok()?;
    let known = u32::from_le_bytes(frame[12..].try_into().ok()?);
    let (says, after) = rest.split_at_checked(length)?;
    (number > 0 && known == sum(salt, number, says)).then_some((number, says, after))
}

fn sum(salt: i64, number: i64, says: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&salt.to_le_bytes());
    sum.update(&number.to_le_bytes());
    sum.update(&(says.len() as u64).to_le_bytes());
    sum.update(says);
    sum.finalize()
}

/// Has it on disk that there is such a file, or none.
fn sync_name(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn too_long(error: std::num::TryFromIntError) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(journal: &mut Journal, says: &str) -> i64 {
        journal
            .append(&mut [&[0; FRAME_BYTES], says.as_bytes()].concat())
            .unwrap()
    }

    fn own(path: &Path, salt: i64, folded: i64) -> Own {
        match read(path, salt, folded).unwrap() {
            Left::Own(own) => own,
            other => panic!("{other:?}"),
        }
    }

    fn in_text(records: Vec<(i64, Vec<u8>)>) -> Vec<(i64, String)> {
        records
            .into_iter()
            .map(|(number, says)| (number, String::from_utf8(says).unwrap()))
            .collect()
    }

    fn texts(path: &Path, salt: i64) -> Vec<(i64, String)> {
        let own = own(path, salt, 0);
        assert!(own.is_header_whole && own.behind.is_empty(), "{own:?}");
        in_text(own.records)
    }

    fn said(records: &[(i64, &str)]) -> Vec<(i64, String)> {
        records
            .iter()
            .map(|(number, text)| (*number, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn reads_what_was_written_and_nothing_of_an_earlier_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        assert_eq!(read(&path, 7, 0).unwrap(), Left::Nothing);
        let mut journal = Journal::create(&path, 7, 40).unwrap();
        assert_eq!(texts(&path, 7), said(&[]));
        assert_eq!(
            [
                write(&mut journal, "one"),
                write(&mut journal, ""),
                write(&mut journal, "three")
            ],
            [41, 42, 43]
        );
        assert_eq!(
            texts(&path, 7),
            said(&[(41, "one"), (42, ""), (43, "three")])
        );
        journal.begin_again();
        write(&mut journal, "ONE");
        assert_eq!(
            texts(&path, 7),
            said(&[(44, "ONE")]),
            "42 stands where 45 would, and is not taken for it"
        );
        assert_eq!(read(&path, 8, 0).unwrap(), Left::Other { is_empty: false });
        journal.remove().unwrap();
        assert_eq!(read(&path, 7, 0).unwrap(), Left::Nothing);
    }

    #[test]
    fn a_record_that_did_not_reach_the_disk_whole_ends_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        let mut journal = Journal::create(&path, 1, 0).unwrap();
        write(&mut journal, "first");
        let second = journal.end;
        write(&mut journal, "second");
        let whole = std::fs::read(&path).unwrap();
        let end = usize::try_from(journal.end).unwrap();
        for at in usize::try_from(second).unwrap()..end {
            let mut torn = whole.clone();
            torn[at] ^= 0x10;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(texts(&path, 1), said(&[(1, "first")]), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(texts(&path, 1), said(&[(1, "first")]), "cut at {at}");
        }
        for cut in [0, 7, 4_095] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(
                read(&path, 1, 0).unwrap(),
                Left::Nothing,
                "a file that was never finished"
            );
        }
    }

    #[test]
    fn whole_records_behind_a_damaged_place_are_found_whatever_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        let mut journal = Journal::create(&path, 1, 0).unwrap();
        // Of an earlier turn.
        for number in 1..=9 {
            write(&mut journal, &format!("earlier {number}"));
        }
        journal.begin_again();
        let ends: Vec<u64> = (10..=14)
            .map(|number| {
                (
                    write(&mut journal, &format!("number {number}")),
                    journal.end,
                )
                    .1
            })
            .collect();
        let whole = std::fs::read(&path).unwrap();
        let read_numbers = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let own = own(&path, 1, 9);
            let numbers = |records: &[(i64, Vec<u8>)]| {
                records
                    .iter()
                    .map(|(number, _)| *number)
                    .collect::<Vec<_>>()
            };
            (
                numbers(&own.records),
                numbers(&own.behind),
                own.is_header_whole,
            )
        };
        for at in HEADER_BYTES..ends[0] {
            let mut damaged = whole.clone();
            damaged[usize::try_from(at).unwrap()] ^= 0x10;
            assert_eq!(
                read_numbers(&damaged),
                (vec![], vec![11, 12, 13, 14], true),
                "byte {at} of the first"
            );
        }
        let mut damaged = whole.clone();
        damaged[usize::try_from(ends[1]).unwrap()..usize::try_from(ends[3]).unwrap()].fill(0);
        assert_eq!(
            read_numbers(&damaged),
            (vec![10, 11], vec![14], true),
            "zeros over two of them"
        );
        for at in [0, 8, 15] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(
                read_numbers(&damaged),
                (vec![10, 11, 12, 13, 14], vec![], false),
                "byte {at} of the header"
            );
        }
    }

    #[test]
    fn a_file_of_another_build_is_told_from_one_that_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        write(&mut Journal::create(&path, 1, 0).unwrap(), "one");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[7] = b'2';
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path, 1, 0).unwrap(), Left::UnknownVersion);
        std::fs::write(&path, vec![0x20; 8_192]).unwrap();
        assert_eq!(read(&path, 1, 0).unwrap(), Left::Damaged);
    }

    #[test]
    fn a_file_that_finds_no_room_is_not_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let error = Journal::create(&path, 1, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(std::fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn a_sync_that_fails_is_not_taken_for_a_full_disk() {
        let refused = |device: &str, room| {
            let file = OpenOptions::new().write(true).open(device).unwrap();
            let mut journal = Journal {
                file,
                path: PathBuf::new(),
                salt: 1,
                end: 0,
                room,
                number: 0,
            };
            journal.append(&mut [0; 100]).unwrap_err()
        };
        assert!(matches!(refused("/dev/full", 0), Refused::NoRoom(_)));
        // It takes everything, and refuses to sync.
        assert!(
            matches!(refused("/dev/null", 0), Refused::Broken(_)),
            "while it grows"
        );
        assert!(matches!(refused("/dev/null", 4_096), Refused::Broken(_)));
    }

    #[test]
    fn grows_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lots");
        let mut journal = Journal::create(&path, 1, 0).unwrap();
        let large = "x".repeat(5_000_000);
        let mut written = 0;
        while journal.takes(large.len()) {
            write(&mut journal, &large);
            written += 1;
        }
        assert_eq!(written, 6);
        assert_eq!(texts(&path, 1).len(), 6);
        assert!(std::fs::metadata(&path).unwrap().len() <= LIMIT_BYTES + GROWTH_BYTES);
        assert!(Journal::could_take(large.len()) && !Journal::could_take(34_000_000));
    }
}
