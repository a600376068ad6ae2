//! The plans that last ran, on disk: a node starts from them when no control plane is in reach.
//!
//! Each environment has a folder of numbered files. A file begins with the whole set. It is written
//! under another name, synced and renamed. Changes are appended and synced, so that one flow's
//! change costs one flow. When they outweigh the set, the next file begins. Every record is sealed,
//! and bound to its place. The three newest files are kept.

mod record;
mod replay;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::Delta;
use prost::Message;

use super::environment::Environment;
use record::{Reader, Writer};
pub use replay::EnvironmentSet;

/// Number of files of one environment that are kept.
const MAX_FILES: usize = 3;

/// Size of the bodies in one record of a whole set, in bytes.
const RECORD_BYTES: usize = 4 << 20;

/// Size of appended records below which no new file is begun, in bytes.
const MIN_APPENDED_BYTES: u64 = 1 << 20;

/// Name of the file with the ids of the environments that the node serves, one a line.
const SERVED_FILE: &str = "environments";

/// The folder of one node's plans.
#[derive(Debug)]
pub struct LastGoodStore {
    folder: PathBuf,
    sealer: Arc<Sealer>,
    /// The files that this process began, and may append to.
    open: HashMap<EnvironmentId, OpenFile>,
    /// The environments that are noted as those that the node serves.
    served: Option<Vec<EnvironmentId>>,
}

/// File that this process began, and may append to.
#[derive(Debug)]
struct OpenFile {
    writer: Writer,
    /// Bytes of the whole set that the file begins with.
    set_bytes: u64,
}

/// Plans that were found on disk.
#[derive(Debug, Default)]
pub struct LoadedPlans {
    pub sets: Vec<EnvironmentSet>,
    /// The environments that the node served, if that is known.
    pub served: Option<Vec<EnvironmentId>>,
}

impl LastGoodStore {
    pub fn new(folder: PathBuf, sealer: Arc<Sealer>) -> Self {
        Self {
            folder,
            sealer,
            open: HashMap::new(),
            served: None,
        }
    }

    /// Reads the newest readable set of every environment. Files that cannot be read are logged and
    /// skipped.
    pub fn load(&mut self) -> LoadedPlans {
        self.served = self.load_served();
        let sets = folders(&self.folder)
            .into_iter()
            .filter_map(|folder| self.load_environment(&folder));
        LoadedPlans {
            sets: sets.collect(),
            served: self.served.clone(),
        }
    }

    /// Saves an environment after `change`.
    ///
    /// # Errors
    /// The write fails. The next call writes the whole set.
    pub fn save(&mut self, environment: &Environment, change: &Delta) -> io::Result<()> {
        if let Some(mut open) = self.open.remove(&environment.id)
            && open.writer.bytes() - open.set_bytes < open.set_bytes.max(MIN_APPENDED_BYTES)
        {
            open.writer.write(&change.encode_to_vec(), &self.sealer)?;
            open.writer.sync()?;
            self.open.insert(environment.id.clone(), open);
            return Ok(());
        }
        let open = self.write_whole(environment)?;
        self.open.insert(environment.id.clone(), open);
        Ok(())
    }

    /// Notes which environments the node serves, unless that is noted already.
    ///
    /// # Errors
    /// The write fails. The next call tries again.
    pub fn note_served(&mut self, environments: &[EnvironmentId]) -> io::Result<()> {
        if self.served.as_deref() == Some(environments) {
            return Ok(());
        }
        self.served = None;
        make_private(&self.folder)?;
        let text: String = environments.iter().map(|id| format!("{id}\n")).collect();
        let temporary = self.folder.join("environments.new");
        let mut writer = Writer::create(&temporary, SERVED_FILE.to_owned())?;
        writer.write(text.as_bytes(), &self.sealer)?;
        writer.sync()?;
        fs::rename(&temporary, self.folder.join(SERVED_FILE))?;
        sync_folder(&self.folder)?;
        self.served = Some(environments.to_vec());
        Ok(())
    }

    /// Seals the newest readable set of each environment under the key in use, if its file is under
    /// a former key, and returns the number of written files. Older files under a former key are
    /// removed and not sealed again. If no file of an environment can be opened, all stay as they
    /// are.
    ///
    /// # Errors
    /// A file cannot be read or written. The remaining files stay under their former key.
    pub fn reseal(&mut self) -> io::Result<u32> {
        let mut count = 0;
        for folder in folders(&self.folder) {
            let mut stale = Vec::new();
            for (number, path) in files(&folder) {
                if !record::is_under_key_in_use(&path, &self.sealer)? {
                    stale.push((number, path));
                }
            }
            if stale.is_empty() {
                continue;
            }
            let all = files(&folder);
            let readable = all
                .iter()
                .rev()
                .find(|(number, path)| self.is_recoverable(&folder, *number, path));
            // The key that opens these files may come back.
            let Some((number, path)) = readable else {
                continue;
            };
            if stale.iter().any(|(stale, _)| stale == number) {
                let newest = all.last().map_or(0, |(number, _)| *number);
                // The open writer would append to the former file. Without it, the next save begins
                // a new one.
                self.open
                    .retain(|id, _| self.folder.join(folder_name(id)) != folder);
                let records = Reader::open(path, context(&folder, *number))?.records(&self.sealer);
                self.write_file(&folder, newest + 1, records)?;
                count += 1;
            }
            for (_, path) in stale {
                fs::remove_file(path)?;
            }
        }
        let file = self.folder.join(SERVED_FILE);
        if file.exists() && !record::is_under_key_in_use(&file, &self.sealer)? {
            let ids = self.load_served();
            self.served = None;
            if let Some(ids) = ids {
                self.note_served(&ids)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns whether a set can be read from a file, which may be damaged after it.
    fn is_recoverable(&self, folder: &Path, number: u64, path: &Path) -> bool {
        let records = Reader::open(path, context(folder, number));
        records.is_ok_and(|reader| replay::of(reader.records(&self.sealer)).is_some())
    }

    /// Removes an environment that the node no longer serves.
    ///
    /// # Errors
    /// The files cannot be removed.
    pub fn remove(&mut self, environment: &EnvironmentId) -> io::Result<()> {
        self.open.remove(environment);
        match fs::remove_dir_all(self.folder.join(folder_name(environment))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn load_environment(&self, folder: &Path) -> Option<EnvironmentSet> {
        files(folder).into_iter().rev().find_map(|(number, path)| {
            let context = context(folder, number);
            let records = Reader::open(&path, context).inspect_err(|error| {
                tracing::warn!(path = %path.display(), %error, "cannot open last good plans");
            });
            let set = replay::of(records.ok()?.records(&self.sealer));
            if set.is_none() {
                tracing::warn!(
                    path = %path.display(),
                    "last good plans cannot be read: trying older ones",
                );
            }
            set
        })
    }

    fn load_served(&self) -> Option<Vec<EnvironmentId>> {
        let reader = Reader::open(&self.folder.join(SERVED_FILE), SERVED_FILE.to_owned()).ok()?;
        let text = String::from_utf8(reader.records(&self.sealer).next()?).ok()?;
        Some(text.lines().map(EnvironmentId::from).collect())
    }

    fn write_whole(&self, environment: &Environment) -> io::Result<OpenFile> {
        let folder = self.folder.join(folder_name(&environment.id));
        make_private(&self.folder)?;
        make_private(&folder)?;
        let existing = files(&folder);
        let number = existing.last().map_or(1, |(number, _)| number + 1);
        let writer = self.write_file(
            &folder,
            number,
            snapshot_records(environment).map(|record| record.encode_to_vec()),
        )?;
        for (_, path) in existing.iter().rev().skip(MAX_FILES - 1) {
            // The newest file holds the plans: an older one that stays costs its room alone.
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove older plans");
            }
        }
        Ok(OpenFile {
            set_bytes: writer.bytes(),
            writer,
        })
    }

    /// Writes a file of these records: afterwards it is whole and durable, or absent.
    fn write_file(
        &self,
        folder: &Path,
        number: u64,
        records: impl Iterator<Item = Vec<u8>>,
    ) -> io::Result<Writer> {
        let temporary = folder.join("new");
        let mut writer = Writer::create(&temporary, context(folder, number))?;
        for record in records {
            writer.write(&record, &self.sealer)?;
        }
        writer.sync()?;
        fs::rename(&temporary, folder.join(file_name(number)))?;
        sync_folder(folder)?;
        sync_folder(&self.folder)?;
        Ok(writer)
    }
}

/// Returns the whole set as deltas from nothing; only the last one has a set hash.
fn snapshot_records(environment: &Environment) -> impl Iterator<Item = Delta> {
    let mut resources = environment.to_resources().peekable();
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let mut upserts = Vec::new();
        let mut bytes = 0;
        while let Some(resource) = resources.next_if(|_| bytes < RECORD_BYTES) {
            bytes += resource.body.len();
            upserts.push(resource);
        }
        done = resources.peek().is_none();
        Some(Delta {
            environment_id: environment.id.to_string(),
            epoch: environment.epoch.to_string(),
            generation: environment.generation,
            upserts,
            set_hash: if done {
                environment.set_hash.to_vec()
            } else {
                Vec::new()
            },
            ..Delta::default()
        })
    })
}

/// Returns the context that the records of a file are sealed for.
fn context(folder: &Path, number: u64) -> String {
    format!(
        "plans/{}/{number}",
        folder.file_name().unwrap_or_default().to_string_lossy()
    )
}

/// Returns the folder of an environment. Ids come over the wire: one that is no plain name is
/// written in hexadecimal digits.
fn folder_name(id: &EnvironmentId) -> String {
    let plain = !id.as_str().is_empty()
        && id
            .as_str()
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain {
        id.to_string()
    } else {
        format!("x-{}", hex::encode(id.as_str()))
    }
}

/// Creates a folder if it is missing. Its owner alone has access, whatever the umask of the process
/// is.
fn make_private(folder: &Path) -> io::Result<()> {
    const MODE: u32 = 0o700;
    match fs::DirBuilder::new().mode(MODE).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Where the folder above it is missing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_private(folder.parent().ok_or(error)?)?;
            make_private(folder)
        }
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(MODE)),
    }
}

fn file_name(number: u64) -> String {
    format!("{number:010}.plans")
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

/// Returns the numbered files, oldest first.
fn files(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let number = entry
                .file_name()
                .to_str()?
                .strip_suffix(".plans")?
                .parse()
                .ok()?;
            Some((number, entry.path()))
        })
        .collect();
    files.sort();
    files
}

/// A rename is durable once its folder is synced.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
