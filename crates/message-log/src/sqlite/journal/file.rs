//! File of journal records, each of which is on disk before its callers are answered. It does not
//! know the content of a record.
//!
//! The file is filled with zeros as it grows and then reused: a sync of bytes that have their place
//! on the disk writes those bytes alone, while a sync of a file that became longer writes metadata
//! of the file system too.

mod scan;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(in crate::sqlite) use self::scan::{JournalContents, RawRecord, read};
#[cfg(feature = "fuzz")]
pub(in crate::sqlite) use self::scan::{encode, parse};

/// First bytes of the file. Historic name: lots are records.
const MAGIC: &[u8; 8] = b"KNTLOTS1";
/// Start of the magic of every version of the file.
const MAGIC_PREFIX: &[u8; 7] = b"KNTLOTS";
/// Length of the header of the file, which has a block of its own that is written once.
const FILE_HEADER_BYTES: u64 = 4_096;
/// Length of the header of a record: its number, the length of the payload, and the checksum.
pub(super) const RECORD_HEADER_BYTES: usize = 16;
/// Length by which the file grows.
const GROWTH_BYTES: u64 = 1024 * 1024;
/// Length at which no more records are added until the file is reused from its start.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes that the file is filled with, one chunk at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Open journal file.
#[derive(Debug)]
pub(super) struct JournalFile {
    file: File,
    path: PathBuf,
    /// Random identity of the file. The checksum of each record includes it, and the tables store
    /// it, so that records of another file are not taken for records of this one. Each new file has
    /// a new salt.
    salt: i64,
    /// Offset of the next record.
    next_offset: u64,
    /// Length that is filled with zeros or records, and synced.
    preallocated: u64,
    /// Number of the last record. Numbers grow by one, so that a remnant of an earlier use of the
    /// file is not taken for the next record.
    last_record_number: i64,
}

/// Reason why a record was not written.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The disk has no room for more. The file is as it was.
    NoSpace(io::Error),
    /// The content of the file is unknown.
    Broken(io::Error),
}

impl AppendError {
    fn from_growth(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::NoSpace(error),
            _ => Self::Broken(error),
        }
    }
}

impl JournalFile {
    /// Creates the file; its first record gets the number after `last_record_number`.
    ///
    /// # Errors
    /// The file could not be created, filled or synced. None is left then.
    pub fn create(path: &Path, salt: i64, last_record_number: i64) -> io::Result<Self> {
        Self::create_preallocated(path, salt, last_record_number).inspect_err(|_| {
            // It would use room that the tables may need, and holds no record.
            let _ = std::fs::remove_file(path);
        })
    }

    fn create_preallocated(path: &Path, salt: i64, last_record_number: i64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // Only the owner may read it, because it holds the content of messages.
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        let mut header = vec![0; usize::try_from(FILE_HEADER_BYTES).unwrap_or(0)];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&salt.to_le_bytes());
        file.write_all_at(&header, 0)?;
        let mut journal = Self {
            file,
            path: path.to_owned(),
            salt,
            next_offset: FILE_HEADER_BYTES,
            preallocated: FILE_HEADER_BYTES,
            last_record_number,
        };
        journal.preallocate()?;
        sync_folder(path)?;
        Ok(journal)
    }

    /// Returns whether a record of `bytes` can be written before the file is reused.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.next_offset.saturating_add(bytes as u64) <= MAX_BYTES
    }

    /// Returns whether a record of `bytes` can ever be written.
    pub fn can_hold(bytes: usize) -> bool {
        FILE_HEADER_BYTES.saturating_add(bytes as u64) <= MAX_BYTES
    }

    /// Writes and syncs a record, and returns its number. This function fills the first
    /// [`RECORD_HEADER_BYTES`] of `record`; the payload follows them.
    pub fn append(&mut self, record: &mut [u8]) -> Result<i64, AppendError> {
        let number = self.last_record_number + 1;
        let (header, payload) = record.split_at_mut(RECORD_HEADER_BYTES);
        let length =
            u32::try_from(payload.len()).map_err(|error| AppendError::NoSpace(too_large(error)))?;
        header[..8].copy_from_slice(&number.to_le_bytes());
        header[8..12].copy_from_slice(&length.to_le_bytes());
        header[12..].copy_from_slice(&checksum(self.salt, number, payload).to_le_bytes());
        let next_offset = self.next_offset + record.len() as u64;
        while next_offset > self.preallocated {
            self.preallocate().map_err(AppendError::from_growth)?;
        }
        self.file
            .write_all_at(record, self.next_offset)
            .map_err(AppendError::Broken)?;
        self.file.sync_data().map_err(AppendError::Broken)?;
        self.next_offset = next_offset;
        self.last_record_number = number;
        Ok(number)
    }

    /// Reuses the file from its start, because no record in it is needed any more.
    pub fn restart(&mut self) {
        self.next_offset = FILE_HEADER_BYTES;
    }

    /// Removes the file, because no record in it is needed any more.
    pub fn remove(self) -> io::Result<()> {
        remove(&self.path)
    }

    /// Writes zeros after the end of the file, and syncs them and the new length.
    fn preallocate(&mut self) -> io::Result<()> {
        for from in (0..GROWTH_BYTES).step_by(ZEROS.len()) {
            self.file.write_all_at(&ZEROS, self.preallocated + from)?;
        }
        self.file.sync_all()?;
        self.preallocated += GROWTH_BYTES;
        Ok(())
    }
}

/// Removes a journal file, also from the disk.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    sync_folder(path)
}

/// Syncs the entry of a created or removed file in its folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)?.sync_all()
}

fn too_large(error: std::num::TryFromIntError) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, error)
}

fn checksum(salt: i64, number: i64, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&salt.to_le_bytes());
    sum.update(&number.to_le_bytes());
    sum.update(&(payload.len() as u64).to_le_bytes());
    sum.update(payload);
    sum.finalize()
}

#[cfg(test)]
mod tests;
