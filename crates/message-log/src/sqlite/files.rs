//! Whether the files that are open are still the ones that the next start will find. Who deletes or
//! moves them does not disturb whoever has them open: what is written then is on a disk, under no
//! name.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::failure::Kind;
use crate::Error;

/// Between two looks at where the paths lead.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two lines of the log about operations that were not written.
const LINE_PAUSE: Duration = Duration::from_secs(60);

/// The open files, for all who have them open. Once one of them is lost it stays so.
#[derive(Clone)]
pub(super) struct Files(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    files: Vec<Named>,
    /// Why nothing is accepted any more.
    lost: OnceLock<String>,
}

/// A file, by a handle that names it and opens nothing: to close another would take SQLite's locks
/// away.
struct Named {
    path: PathBuf,
    handle: OwnedFd,
}

impl Files {
    /// Takes those of the files of one folder that are there.
    pub fn open(paths: &[PathBuf]) -> Self {
        let folder = paths
            .first()
            .and_then(|path| path.parent())
            .unwrap_or(Path::new("."));
        let files = paths.iter().filter_map(|path| Named::open(path)).collect();
        Self(Arc::new(Inner {
            folder: folder.to_owned(),
            files,
            lost: OnceLock::new(),
        }))
    }

    /// Errors when one of the files has no name any more. It takes a fraction of a microsecond for
    /// each.
    pub fn check(&self) -> Result<(), Error> {
        self.all(Named::has_a_name)
    }

    /// Errors when one of the files is not where it was.
    pub fn look(&self) -> Result<(), Error> {
        self.all(Named::is_in_its_place)
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    fn all(&self, is_there: fn(&Named) -> bool) -> Result<(), Error> {
        let Inner { files, lost, .. } = &*self.0;
        if lost.get().is_none()
            && let Some(gone) = files.iter().find(|named| !is_there(named))
        {
            let reason = format!(
                "{} was deleted, moved or replaced while it is open",
                gone.path.display()
            );
            tracing::error!(
                "nothing is accepted any more: {reason}; stop the process, put the file back, and \
                 start again",
            );
            // Another thread may have said so at the same time.
            let _ = lost.set(reason);
        }
        lost.get()
            .map_or(Ok(()), |reason| Err(Error::Disk(reason.clone())))
    }
}

impl Named {
    fn open(path: &Path) -> Option<Self> {
        let handle = fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self {
            path: path.to_owned(),
            handle,
        })
    }

    /// A look that fails for another reason than that there is no such file says nothing.
    fn has_a_name(&self) -> bool {
        fs::fstat(&self.handle).map_or(true, |stat| stat.st_nlink > 0)
    }

    fn is_in_its_place(&self) -> bool {
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

/// The writer's looks: at each group whether the files have names, and each second whether these
/// are the same.
pub(super) struct Watch {
    files: Files,
    looked: Cell<Instant>,
    /// When the log of the service was last told of a disk that takes nothing.
    told: Cell<Option<Instant>>,
    /// Number of operations that were refused since then.
    untold: Cell<usize>,
}

impl Watch {
    pub fn new(files: Files) -> Self {
        Self {
            files,
            looked: Cell::new(Instant::now()),
            told: Cell::default(),
            untold: Cell::default(),
        }
    }

    /// Tells the log of the service, once a minute, that operations were not written; returns what
    /// to tell whose they are.
    pub fn not_written(&self, error: &rusqlite::Error, operations: usize) -> Error {
        let refusal = Kind::refusal(error, self.files.folder());
        let now = Instant::now();
        self.untold.set(self.untold.get() + operations);
        if self
            .told
            .get()
            .is_none_or(|told| now.duration_since(told) >= LINE_PAUSE)
        {
            self.told.set(Some(now));
            tracing::error!(%error, operations = self.untold.take(), "{refusal}");
        }
        refusal
    }

    /// Returns what to tell whose messages are refused because the disk is full.
    pub fn disk_is_full(&self) -> Error {
        Error::Disk(format!(
            "the disk of {} is full",
            self.files.folder().display()
        ))
    }

    /// Errors when what was written before this would not be found again.
    pub fn check(&self) -> Result<(), Error> {
        let now = Instant::now();
        if now.duration_since(self.looked.get()) < PAUSE {
            return self.files.check();
        }
        self.looked.set(now);
        self.files.look()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_lost_once_it_is_deleted_moved_or_replaced_and_stays_so() {
        type Deed = fn(&Path);
        let deleted: Deed = |path| std::fs::remove_file(path).unwrap();
        let moved: Deed = |path| std::fs::rename(path, path.with_extension("away")).unwrap();
        let replaced: Deed = |path| {
            std::fs::write(path.with_extension("other"), "").unwrap();
            std::fs::rename(path.with_extension("other"), path).unwrap();
        };
        for (deed, is_seen_at_once) in [(deleted, true), (moved, false), (replaced, true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("messages.db");
            std::fs::write(&path, "").unwrap();
            let files = Files::open(&[path.clone(), folder.path().join("none")]);
            assert!(files.check().is_ok() && files.look().is_ok());
            deed(&path);
            assert_eq!(files.check().is_err(), is_seen_at_once);
            assert!(files.look().is_err());
            std::fs::write(&path, "").unwrap();
            assert!(
                files.clone().check().is_err(),
                "what was accepted before is not in this one"
            );
        }
    }
}
