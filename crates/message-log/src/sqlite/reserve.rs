//! A file of the data folder that holds nothing but room. When the disk is full it is deleted, so
//! that what became of accepted messages can be written all the same; new messages are refused from
//! then on until there is room for it again.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Length of the file.
const BYTES: u64 = 8 << 20;
/// A disk with less room than this is full.
const FULL_BYTES: u64 = 1 << 20;
/// Bytes of one write, and of one block of `st_blocks`.
const CHUNK: usize = 64 << 10;
const BLOCK_BYTES: u64 = 512;

/// The reserve of one folder, for the thread that writes.
pub(super) struct Reserve {
    path: PathBuf,
    /// It was deleted because the disk was full, and is not there again.
    is_given: Cell<bool>,
    /// Somebody was refused since.
    has_refused: Cell<bool>,
}

impl Reserve {
    /// Takes up the file that a former process left beside the log's own, or writes it. Where there
    /// is no room for it, the log does without.
    pub fn open(log: &Path) -> Self {
        let mut name = log.as_os_str().to_owned();
        name.push("-reserve");
        let reserve = Self {
            path: PathBuf::from(name),
            is_given: Cell::default(),
            has_refused: Cell::default(),
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

    /// Returns whether the disk is full. Where that cannot be told it is not.
    pub fn is_disk_full(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < FULL_BYTES)
    }

    /// Deletes the file, and returns whether that gave room.
    pub fn give(&self) -> bool {
        let given = std::fs::remove_file(&self.path).is_ok();
        if given {
            self.is_given.set(true);
        }
        given
    }

    /// Returns whether it was given, and is not there again.
    pub fn is_given(&self) -> bool {
        self.is_given.get()
    }

    /// Returns whether new messages may be written: not while the reserve is given and there is no
    /// room for it.
    pub fn lets_in(&self) -> bool {
        if !self.is_given.get() {
            return true;
        }
        let has_room = self
            .free_bytes()
            .is_none_or(|free| free >= BYTES + 2 * FULL_BYTES);
        let is_back = has_room && self.write().is_ok();
        self.is_given.set(!is_back);
        if !is_back && !self.has_refused.replace(true) {
            tracing::error!(
                file = %self.path.display(),
                "the disk is full: the reserve is given to what becomes of accepted messages, and \
                 no new ones are taken until there is room for it again",
            );
        }
        if is_back && self.has_refused.replace(false) {
            tracing::info!(
                "there is room on the disk again: the reserve is kept, and new messages are taken"
            );
        }
        is_back
    }

    fn free_bytes(&self) -> Option<u64> {
        let folder = self.path.parent()?;
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// One that is sparse, or compressed to nothing, holds no room.
    fn is_whole(&self) -> bool {
        std::fs::metadata(&self.path)
            .is_ok_and(|found| found.len() == BYTES && found.blocks() * BLOCK_BYTES >= BYTES)
    }

    fn write(&self) -> io::Result<()> {
        let mut create = std::fs::OpenOptions::new();
        create.write(true).create(true).truncate(true).mode(0o600);
        let written = create.open(&self.path).and_then(|mut file| {
            let mut state = 0x9e37_79b9_7f4a_7c15_u64;
            let mut chunk = vec![0_u8; CHUNK];
            for _ in 0..BYTES / CHUNK as u64 {
                for word in chunk.chunks_exact_mut(8) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    word.copy_from_slice(&state.to_ne_bytes());
                }
                file.write_all(&chunk)?;
            }
            Ok(())
        });
        if written.is_err() {
            // What was written of it would only be in the way.
            let _ = std::fs::remove_file(&self.path);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_written_whole_and_taken_up_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("messages.db");
        let path = folder.path().join("messages.db-reserve");
        let reserve = Reserve::open(&log);
        let written = std::fs::metadata(&path).unwrap();
        assert_eq!(written.len(), BYTES);
        assert_eq!(written.mode() & 0o777, 0o600);
        assert!(reserve.lets_in());
        drop(Reserve::open(&log));
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), written.ino());
        std::fs::write(&path, "").unwrap();
        drop(Reserve::open(&log));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), BYTES);
    }

    #[test]
    fn a_given_reserve_comes_back_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(&folder.path().join("messages.db"));
        assert!(reserve.give());
        assert!(!reserve.give(), "there is nothing left to give");
        assert!(reserve.lets_in(), "the disk of the tests has room");
        assert!(reserve.is_whole());
    }
}
