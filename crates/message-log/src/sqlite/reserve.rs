//! Reserve of disk space: a file of the data folder that only takes room. When the disk is full, it
//! is deleted, so that outcomes of accepted messages can be written. New messages are refused from
//! then on until there is room for the reserve again.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Length of the file.
const RESERVE_BYTES: u64 = 8 << 20;
/// Free bytes below which a disk counts as full.
const MIN_FREE_BYTES: u64 = 1 << 20;
/// Length of one write. All writes have the same bytes, except a number in each block. The
/// repetition does not compress, because file systems compress windows of at most 1 MiB.
const CHUNK_BYTES: usize = 1 << 20;
/// Length of one block of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// Reserve of one folder, for the writer's thread.
pub(super) struct Reserve {
    path: PathBuf,
    /// True if the file was deleted because the disk was full, and is not back.
    is_released: Cell<bool>,
    /// True once the line about the released reserve was logged.
    is_outage_logged: Cell<bool>,
}

impl Reserve {
    /// Uses the file that an earlier process left beside the log's own, or writes it. Without room
    /// for it there is no reserve.
    pub fn open(log: &Path) -> Self {
        let mut name = log.as_os_str().to_owned();
        name.push("-reserve");
        let reserve = Self {
            path: PathBuf::from(name),
            is_released: Cell::default(),
            is_outage_logged: Cell::default(),
        };
        if !reserve.is_whole()
            && let Err(error) = reserve.write()
        {
            tracing::warn!(
                %error,
                file = %reserve.path.display(),
                "there is no room for a reserve of 8 MiB",
            );
        }
        reserve
    }

    /// Returns whether the disk is full; `false` when the system does not report it.
    pub fn is_disk_full(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < MIN_FREE_BYTES)
    }

    /// Deletes the file, and returns whether there was one to delete.
    pub fn release(&self) -> bool {
        let is_deleted = std::fs::remove_file(&self.path).is_ok();
        if is_deleted {
            self.is_released.set(true);
        }
        is_deleted
    }

    /// Returns whether the file was deleted, and is not back.
    pub fn is_released(&self) -> bool {
        self.is_released.get()
    }

    /// Restores a released reserve if there is room for it. Returns whether the reserve is there,
    /// or was never released, so that new messages may be written.
    pub fn ensure_available(&self) -> bool {
        if !self.is_released.get() {
            return true;
        }
        let has_room = self
            .free_bytes()
            .is_none_or(|free| free >= RESERVE_BYTES + 2 * MIN_FREE_BYTES);
        let is_back = has_room && self.write().is_ok();
        self.is_released.set(!is_back);
        if !is_back && !self.is_outage_logged.replace(true) {
            tracing::error!(
                file = %self.path.display(),
                "the disk is full: the reserve is released for outcomes of accepted messages, and \
                 new messages are refused until there is room for it again",
            );
        }
        if is_back && self.is_outage_logged.replace(false) {
            tracing::info!(
                "there is room on the disk again: the reserve is back, and new messages are \
                 accepted"
            );
        }
        is_back
    }

    fn free_bytes(&self) -> Option<u64> {
        let folder = self.path.parent()?;
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Returns whether the file takes its room. A sparse or compressed one does not.
    fn is_whole(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|found| {
            found.len() == RESERVE_BYTES && found.blocks() * BLOCK_BYTES >= RESERVE_BYTES
        })
    }

    fn write(&self) -> io::Result<()> {
        let mut create = std::fs::OpenOptions::new();
        create.write(true).create(true).truncate(true).mode(0o600);
        let written = create.open(&self.path).and_then(|mut file| {
            let mut chunk = incompressible(CHUNK_BYTES);
            for number in 0..RESERVE_BYTES / CHUNK_BYTES as u64 {
                // No two blocks are equal: a file system that stores equal ones once would save
                // room.
                for block in chunk.chunks_exact_mut(BLOCK_BYTES as usize) {
                    block[..8].copy_from_slice(&number.to_ne_bytes());
                }
                file.write_all(&chunk)?;
            }
            Ok(())
        });
        if written.is_err() {
            // A part of it takes room for nothing.
            let _ = std::fs::remove_file(&self.path);
        }
        written
    }
}

/// Returns bytes that do not compress, so that a compressed file takes its room.
fn incompressible(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_ne_bytes()
    });
    words.take(length / 8).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_written_whole_and_used_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("messages.db");
        let path = folder.path().join("messages.db-reserve");
        let reserve = Reserve::open(&log);
        let written = std::fs::metadata(&path).unwrap();
        assert_eq!(written.len(), RESERVE_BYTES);
        assert_eq!(written.mode() & 0o777, 0o600);
        assert!(reserve.ensure_available());
        drop(Reserve::open(&log));
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), written.ino());
        std::fs::write(&path, "").unwrap();
        drop(Reserve::open(&log));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), RESERVE_BYTES);
    }

    #[test]
    fn a_released_reserve_comes_back_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(&folder.path().join("messages.db"));
        assert!(reserve.release());
        assert!(!reserve.release(), "there is nothing left to release");
        assert!(reserve.ensure_available(), "the disk of the tests has room");
        assert!(reserve.is_whole());
    }
}
