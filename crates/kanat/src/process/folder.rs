//! The data folder: one process at a time, and nobody else's to read. The locks are the system's,
//! so that they are gone when the process is. The databases are locked themselves too: deleting the
//! file of the lock frees the folder, not them.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kanat_store::Store;
use parking_lot::Mutex;

use crate::exit::usage;

const LOCK: &str = "lock";

/// Folder of the plans that ran last.
const PLANS: &str = "plans";

/// Advice for a folder that another process uses.
const ADVICE: &str = "stop it, or give this one its own with --data-dir";

/// The configuration store in a data folder.
pub const STORE: &str = "config.db";

/// A data folder. One that was taken is held until this is dropped.
pub struct Folder {
    path: PathBuf,
    _lock: Option<File>,
    /// To close one of them would take SQLite's own locks away, so that they outlive all who have
    /// the databases open.
    databases: Mutex<Vec<File>>,
}

impl Folder {
    /// Makes the folder when it is missing, and leaves it to others as well.
    pub fn open(path: &Path) -> Result<Self> {
        make(path).map_err(|error| {
            usage(format!(
                "cannot make the data folder {}: {error}; --data-dir or KANAT_DATA_DIR names \
                 another",
                path.display()
            ))
        })?;
        close(path, 0o700);
        close_plans(&path.join(PLANS));
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        tracing::info!("the data folder is {}", absolute.display());
        Ok(Self {
            path: path.to_owned(),
            _lock: None,
            databases: Mutex::default(),
        })
    }

    /// Makes the folder when it is missing, and takes it; an error when another process has it.
    pub fn take(path: &Path) -> Result<Self> {
        Self::take_or(path, ADVICE)
    }

    /// Takes the folder; `advice` ends the error when another process has it.
    pub fn take_or(path: &Path, advice: &str) -> Result<Self> {
        let folder = Self::open(path)?;
        let lock = lock(&path.join(LOCK), path, advice)?;
        Ok(Self {
            _lock: Some(lock),
            ..folder
        })
    }

    /// Takes the folder of a service that is stopped, and opens its configuration.
    ///
    /// # Errors
    /// The folder holds no configuration, or a service uses it.
    pub async fn open_store(path: &Path) -> Result<(Self, Store)> {
        let file = path.join(STORE);
        if !file.is_file() {
            return Err(usage(format!(
                "there is no {STORE} in {}: no service keeps its data there",
                path.display()
            )));
        }
        let folder = Self::take_or(
            path,
            "stop the service first, and start it again afterwards",
        )?;
        let file = folder.database(STORE)?;
        let store = Store::open(&format!("sqlite:{}", file.display())).await;
        Ok((
            folder,
            store.with_context(|| format!("cannot open {}", file.display()))?,
        ))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the file of a database, which is made when it is missing: until this folder is dropped
    /// no other process takes it. Its owner alone can read it; SQLite gives the files beside it the
    /// same mode. Returns its path.
    ///
    /// # Errors
    /// Another process has taken it, or it cannot be opened.
    pub fn database(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let file = lock(&path, &self.path, ADVICE)?;
        self.databases.lock().push(file);
        Ok(path)
    }
}

/// Opens a file of a folder and locks it.
fn lock(path: &Path, folder: &Path, advice: &str) -> Result<File> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(usage(format!(
            "another kanat process uses the data folder {}\n{advice}",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Takes what others may do with a file or folder of ours away, and says so. A folder for
/// everybody, such as `/tmp`, is not ours; neither is one that another user owns, as some volumes
/// are.
pub fn close(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        const STICKY: u32 = 0o1000;
        let Ok(found) = std::fs::metadata(path) else {
            return;
        };
        if found.uid() != rustix::process::geteuid().as_raw() {
            return;
        }
        let found = found.permissions().mode() & 0o7777;
        if found & 0o077 == 0 || found & STICKY != 0 {
            return;
        }
        let path_text = path.display();
        match std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)) {
            Ok(()) => {
                tracing::warn!(
                    "{path_text} was open to others (mode {found:o}), and is closed now (mode \
                     {mode:o})",
                )
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "{path_text} is open to others (mode {found:o}), and cannot be closed",
                )
            }
        }
    }
}

/// Closes the folder of the plans and those of its environments. Builds of before left their modes
/// to the umask.
fn close_plans(plans: &Path) {
    close(plans, 0o700);
    let entries = std::fs::read_dir(plans).into_iter().flatten().flatten();
    // A link leads to what is not ours.
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.for_each(|folder| close(&folder.path(), 0o700));
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let first = Folder::take(&folder).unwrap();
        let error = Folder::take(&folder).err().unwrap().to_string();
        assert!(
            error.contains("another kanat process") && error.contains("--data-dir"),
            "{error}"
        );
        drop(first);
        Folder::take(&folder).unwrap();
    }

    #[test]
    fn a_database_has_one_holder_also_where_the_lock_was_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let first = Folder::take(folder.path()).unwrap();
        first.database("messages.db").unwrap();
        std::fs::remove_file(folder.path().join(LOCK)).unwrap();
        let second = Folder::take(folder.path()).unwrap();
        let error = second.database("messages.db").err().unwrap().to_string();
        assert!(error.contains("another kanat process"), "{error}");
        drop(first);
        second.database("messages.db").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_is_open_to_others_is_closed_but_for_a_folder_of_everybody() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("master.key");
        close(&path, 0o600);
        std::fs::write(&path, "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
        };
        for (found, left) in [(0o644, 0o600), (0o640, 0o600), (0o400, 0o400)] {
            set(&path, found);
            close(&path, 0o600);
            assert_eq!(mode(&path), left, "{found:o}");
        }
        set(parent.path(), 0o1777);
        close(parent.path(), 0o700);
        assert_eq!(mode(parent.path()), 0o1777);
        set(parent.path(), 0o755);
        drop(Folder::open(parent.path()).unwrap());
        assert_eq!(mode(parent.path()), 0o700);
    }

    #[cfg(unix)]
    #[test]
    fn its_files_are_their_owner_s_alone_even_in_an_open_folder() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        std::fs::set_permissions(parent.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = Folder::take(parent.path())
            .unwrap()
            .database("messages.db")
            .unwrap();
        assert_eq!(
            std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
