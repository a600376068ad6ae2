//! Reads the records of a journal file, also of a damaged one.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{FILE_HEADER_BYTES, MAGIC, MAGIC_PREFIX, MAX_BYTES, RECORD_HEADER_BYTES, checksum};

/// Content of the file that an earlier process may have left.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum JournalContents {
    /// There is no file, or its creation was not completed.
    Missing,
    /// The file is the journal of the tables.
    Own(OwnRecords),
    /// The file is the journal of other tables, or of these at another time.
    Foreign { is_empty: bool },
    /// The file is not a journal, or is damaged as a whole.
    Damaged,
    /// The file is a journal of another version of this program.
    UnknownVersion,
}

/// Valid records of a journal, in the order of their numbers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct OwnRecords {
    /// Records from the start of the file to the first offset without a valid one.
    pub records: Vec<RawRecord>,
    /// Records after that offset that the tables lack. Their higher numbers prove that a record is
    /// missing before them, so the file is damaged there.
    pub salvaged: Vec<RawRecord>,
    /// True if the header is that of the tables' journal.
    pub is_header_valid: bool,
}

/// Record of the file, with its content as bytes.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sqlite) struct RawRecord {
    pub number: i64,
    pub payload: Vec<u8>,
}

/// Reads a file for tables whose journal has `salt` and that have all records up to number
/// `applied`.
pub(in crate::sqlite) fn read(path: &Path, salt: i64, applied: i64) -> io::Result<JournalContents> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(JournalContents::Missing);
        }
        Err(error) => return Err(error),
    };
    Ok(parse(&bytes, salt, applied))
}

/// Parses the bytes of a file, as [`read`] does.
pub(in crate::sqlite) fn parse(bytes: &[u8], salt: i64, applied: i64) -> JournalContents {
    let Some((header, body)) = bytes.split_at_checked(FILE_HEADER_BYTES as usize) else {
        return JournalContents::Missing;
    };
    let header_salt = header[8..16]
        .try_into()
        .map(i64::from_le_bytes)
        .unwrap_or_default();
    let has_magic = header.starts_with(MAGIC);
    let is_header_valid = has_magic && header_salt == salt;
    let (records, rest) = leading_records(body, salt);
    let last = records
        .last()
        .map_or(applied, |record| applied.max(record.number));
    let salvaged = salvage(rest, salt, last);
    let has_unapplied = !salvaged.is_empty() || last > applied;
    if is_header_valid || has_unapplied && !is_of_another_version(header) {
        JournalContents::Own(OwnRecords {
            records,
            salvaged,
            is_header_valid,
        })
    } else if has_magic {
        JournalContents::Foreign {
            is_empty: leading_records(body, header_salt).0.is_empty(),
        }
    } else if is_of_another_version(header) {
        JournalContents::UnknownVersion
    } else if bytes.iter().all(|byte| *byte == 0) {
        // The power failed while the file was created.
        JournalContents::Missing
    } else {
        JournalContents::Damaged
    }
}

/// Encodes a journal of records with these payloads and numbers from 1.
#[cfg(feature = "fuzz")]
pub(in crate::sqlite) fn encode(salt: i64, payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; FILE_HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&salt.to_le_bytes());
    for (number, payload) in (1_i64..).zip(payloads) {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&checksum(salt, number, payload).to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    bytes
}

fn is_of_another_version(header: &[u8]) -> bool {
    header.starts_with(MAGIC_PREFIX) && !header.starts_with(MAGIC)
}

/// Returns the records up to the first offset without a valid one, and the bytes from there on.
/// The number of each record is that of the one before plus one.
fn leading_records(mut rest: &[u8], salt: i64) -> (Vec<RawRecord>, &[u8]) {
    let mut records: Vec<RawRecord> = Vec::new();
    while let Some((record, after)) = first_record(rest, salt)
        && records
            .last()
            .is_none_or(|last| last.number + 1 == record.number)
    {
        records.push(record);
        rest = after;
    }
    (records, rest)
}

/// Returns the valid records with numbers after `last`, at any offset. Records of an earlier use of
/// the file have smaller numbers. A number that exceeds `last` by more than the largest possible
/// number of records is not that of a record of this journal.
fn salvage(mut rest: &[u8], salt: i64, last: i64) -> Vec<RawRecord> {
    const MAX_RECORDS: i64 = (MAX_BYTES / RECORD_HEADER_BYTES as u64).cast_signed();
    // A body of a message may look like a record at every offset. The budget bounds the bytes that
    // are summed up to a few seconds of work.
    let mut budget = 64 * MAX_BYTES;
    let mut found: Vec<RawRecord> = Vec::new();
    while let Some((number, _)) = rest.split_first_chunk::<8>() {
        let number = i64::from_le_bytes(*number);
        let from = found.last().map_or(last, |record| record.number);
        let is_possible = from < number && number <= last.saturating_add(MAX_RECORDS) && budget > 0;
        let record = is_possible.then(|| first_record(rest, salt)).flatten();
        if is_possible && record.is_none() {
            budget = budget.saturating_sub(claimed_length(rest));
        }
        rest = match record {
            Some((record, after)) => {
                found.push(record);
                after
            }
            None => &rest[1..],
        };
    }
    found
}

/// Returns the payload length that the first bytes would have as the header of a record; 0 if the
/// bytes are too few for it.
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

/// Returns the record that `bytes` begin with, and the bytes after it.
fn first_record(bytes: &[u8], salt: i64) -> Option<(RawRecord, &[u8])> {
    let (header, rest) = bytes.split_at_checked(RECORD_HEADER_BYTES)?;
    let number = i64::from_le_bytes(header[..8].try_into().ok()?);
    let length = usize::try_from(u32::from_le_bytes(header[8..12].try_into().ok()?)).ok()?;
    let expected = u32::from_le_bytes(header[12..].try_into().ok()?);
    let (payload, after) = rest.split_at_checked(length)?;
    let is_valid = number > 0 && expected == checksum(salt, number, payload);
    is_valid.then(|| {
        let payload = payload.to_vec();
        (RawRecord { number, payload }, after)
    })
}
