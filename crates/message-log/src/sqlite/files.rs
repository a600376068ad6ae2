//! Checks that the open files are still those that the next start will find. A process does not
//! notice when its open file is deleted or moved: its later writes go to a file without a name.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, Result};

/// Time between two checks of the paths.
const PATH_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Open files of a log, shared by all their users. A file that is lost once stays lost.
#[derive(Clone)]
pub(super) struct OpenFiles(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    files: Vec<FileHandle>,
    /// Reason why no operation is accepted any more.
    lost: OnceLock<String>,
}

/// Handle that refers to a file without opening it. Closing an open one would release SQLite's
/// locks.
struct FileHandle {
    path: PathBuf,
    handle: OwnedFd,
}

impl OpenFiles {
    /// Refers to the existing files among `paths`, which are in one folder.
    pub fn open(paths: &[PathBuf]) -> Self {
        let folder = paths
            .first()
            .and_then(|path| path.parent())
            .unwrap_or(Path::new("."));
        let files = paths
            .iter()
            .filter_map(|path| FileHandle::open(path))
            .collect();
        Self(Arc::new(Inner {
            folder: folder.to_owned(),
            files,
            lost: OnceLock::new(),
        }))
    }

    /// Checks that the link count of each file is above 0, which takes a fraction of a microsecond
    /// for each.
    ///
    /// # Errors
    /// One of the files was deleted.
    pub fn check_linked(&self) -> Result<()> {
        self.check(FileHandle::is_linked)
    }

    /// Checks that each path leads to its file.
    ///
    /// # Errors
    /// One of the files was deleted, moved or replaced.
    pub fn check_paths(&self) -> Result<()> {
        self.check(FileHandle::is_at_path)
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    fn check(&self, is_there: fn(&FileHandle) -> bool) -> Result<()> {
        let Inner { files, lost, .. } = &*self.0;
        if lost.get().is_none()
            && let Some(gone) = files.iter().find(|file| !is_there(file))
        {
            let reason = format!(
                "{} was deleted, moved or replaced while it is open",
                gone.path.display()
            );
            tracing::error!(
                "nothing is accepted any more: {reason}; stop the process, put the file back, and \
                 start again",
            );
            // Another thread may have set it at the same time.
            let _ = lost.set(reason);
        }
        lost.get()
            .map_or(Ok(()), |reason| Err(Error::Disk(reason.clone())))
    }
}

impl FileHandle {
    fn open(path: &Path) -> Option<Self> {
        let handle = fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self {
            path: path.to_owned(),
            handle,
        })
    }

    /// Returns whether the link count of the file is above 0, or cannot be read. It is 0 once the
    /// open file was deleted.
    fn is_linked(&self) -> bool {
        fs::fstat(&self.handle).map_or(true, |stat| stat.st_nlink > 0)
    }

    /// Returns whether the path leads to the file, also when the check fails for another reason
    /// than a missing file.
    fn is_at_path(&self) -> bool {
        let Ok(open) = fs::fstat(&self.handle) else {
            return true;
        };
        match fs::stat(&self.path) {
            Ok(found) => {
                open.st_nlink > 0 && (open.st_dev, open.st_ino) == (found.st_dev, found.st_ino)
            }
            Err(error) => !matches!(error, Errno::NOENT | Errno::NOTDIR),
        }
    }
}

/// The writer's checks of the files: their link counts before and after each commit, and their
/// paths once a second.
pub(super) struct FileCheck {
    files: OpenFiles,
    last_path_check: Cell<Instant>,
}

impl FileCheck {
    pub fn new(files: OpenFiles) -> Self {
        Self {
            files,
            last_path_check: Cell::new(Instant::now()),
        }
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// Checks that the next start will find everything that was written until now.
    ///
    /// # Errors
    /// One of the files was lost.
    pub fn check(&self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.last_path_check.get()) < PATH_CHECK_INTERVAL {
            return self.files.check_linked();
        }
        self.last_path_check.set(now);
        self.files.check_paths()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_lost_once_it_is_deleted_moved_or_replaced_and_stays_so() {
        type Change = fn(&Path);
        let deleted: Change = |path| std::fs::remove_file(path).unwrap();
        let moved: Change = |path| std::fs::rename(path, path.with_extension("away")).unwrap();
        let replaced: Change = |path| {
            std::fs::write(path.with_extension("other"), "").unwrap();
            std::fs::rename(path.with_extension("other"), path).unwrap();
        };
        for (change, is_seen_at_once) in [(deleted, true), (moved, false), (replaced, true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("messages.db");
            std::fs::write(&path, "").unwrap();
            let files = OpenFiles::open(&[path.clone(), folder.path().join("none")]);
            files.check_linked().unwrap();
            files.check_paths().unwrap();
            change(&path);
            assert_eq!(files.check_linked().is_err(), is_seen_at_once);
            assert!(files.check_paths().is_err());
            std::fs::write(&path, "").unwrap();
            assert!(
                files.clone().check_linked().is_err(),
                "what was accepted before is not in this one"
            );
        }
    }
}
