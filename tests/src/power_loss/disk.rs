//! A folder on a disk, with what the system has not written back yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;

use super::file::File;
use super::{Operation, Record};
use crate::random::{Random, mix};

/// Made anew by SQLite, and changed by ways that no trace shows.
const SHARED_MEMORY: &str = "-shm";

/// How much of what is not synced is on disk all the same.
#[derive(Debug, Clone)]
pub struct Writeback {
    seed: u64,
    extent: Extent,
    sector_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Extent {
    Nothing,
    Everything,
    /// Each sector, name and length has a moment of its own.
    Each,
    /// Each sector is as it was, or as it was last.
    AllOrNothing,
}

/// The files of a folder as a trace has left them.
pub struct Disk {
    files: Vec<File>,
    /// Files by their names in the beginning.
    before: BTreeMap<String, usize>,
    /// Files by their names now, as processes see them.
    now: BTreeMap<String, usize>,
    folders: BTreeSet<String>,
    nodes: HashMap<u64, Node>,
    entries: Vec<Entry>,
}

/// Content of an inode.
enum Node {
    File(usize),
    Folder(String),
}

/// A change of names in a folder.
struct Entry {
    folder: String,
    /// Length of the trace with it.
    end: u64,
    is_durable: bool,
    change: Names,
}

enum Names {
    Put(String, usize),
    Remove(String),
    Move(String, String),
}

impl Writeback {
    /// Returns the choice of nothing but what was synced.
    pub fn nothing() -> Self {
        Self {
            seed: 0,
            extent: Extent::Nothing,
            sector_bytes: 4_096,
        }
    }

    /// Returns the choice of all, as when only the process dies.
    pub fn everything() -> Self {
        Self {
            seed: 0,
            extent: Extent::Everything,
            sector_bytes: 4_096,
        }
    }

    /// Returns the choice of this seed.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let sector_bytes = *random.choose(&[512, 4_096]);
        let extent = [
            Extent::Nothing,
            Extent::Each,
            Extent::Each,
            Extent::AllOrNothing,
            Extent::Everything,
        ];
        Self {
            seed,
            extent: *random.choose(&extent),
            sector_bytes,
        }
    }

    pub(super) fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Returns how many of `pending` changes, the first ones, a place of a file shows.
    pub(super) fn count(&self, file: u64, place: u64, pending: usize) -> usize {
        let number = mix(self.seed ^ mix(file ^ mix(place)));
        match self.extent {
            Extent::Nothing => 0,
            Extent::Everything => pending,
            Extent::Each => {
                usize::try_from(number % (pending as u64 + 1)).expect("it is below a usize")
            }
            Extent::AllOrNothing if number.is_multiple_of(2) => 0,
            Extent::AllOrNothing => pending,
        }
    }
}

impl Disk {
    /// Reads a folder, all of which is on disk.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut disk = Self {
            files: Vec::new(),
            before: BTreeMap::new(),
            now: BTreeMap::new(),
            folders: BTreeSet::from([String::new()]),
            nodes: HashMap::new(),
            entries: Vec::new(),
        };
        for (name, contents) in contents_of(folder, &mut disk.folders)? {
            let file = disk.add(contents.into());
            disk.before.insert(name.clone(), file);
            disk.now.insert(name, file);
        }
        Ok(disk)
    }

    /// Follows the trace by one record.
    ///
    /// # Errors
    ///
    /// The record speaks of a file that is not here: something was done that the recorder does not
    /// see.
    pub fn follow(&mut self, record: &Record) -> Result<()> {
        let end = record.end;
        match &record.operation {
            Operation::OpenFile { file, name } => {
                let known = *self
                    .now
                    .get(name)
                    .with_context(|| format!("{name} was opened and never created"))?;
                self.nodes.insert(*file, Node::File(known));
            }
            Operation::OpenFolder { file, name } => {
                self.nodes.insert(*file, Node::Folder(name.clone()));
            }
            Operation::Create { file, name } => {
                let new = self.add(Bytes::new());
                self.nodes.insert(*file, Node::File(new));
                self.now.insert(name.clone(), new);
                self.enter(name, end, Names::Put(name.clone(), new));
            }
            Operation::Write { file, offset, data } => {
                self.file(*file)?.write(end, *offset, data.clone())
            }
            Operation::Truncate { file, length } => self.file(*file)?.set_length(end, *length),
            Operation::Sync { file, covers } => match self.node(*file)? {
                Node::File(file) => {
                    let file = *file;
                    self.files[file].sync(*covers);
                }
                Node::Folder(folder) => {
                    let folder = folder.clone();
                    let is_covered =
                        |entry: &&mut Entry| entry.folder == folder && entry.end <= *covers;
                    self.entries
                        .iter_mut()
                        .filter(is_covered)
                        .for_each(|entry| entry.is_durable = true);
                }
            },
            Operation::SyncFailed { file, covers } => {
                if let Node::File(file) = self.node(*file)? {
                    let file = *file;
                    self.files[file].fail_to_sync(*covers);
                }
            }
            Operation::Unlink { name } => {
                self.now.remove(name);
                self.enter(name, end, Names::Remove(name.clone()));
            }
            Operation::Rename { from, to } => {
                ensure!(
                    parent(from) == parent(to),
                    "{from} was moved to another folder: {to}"
                );
                let file = self
                    .now
                    .remove(from)
                    .with_context(|| format!("{from} was moved and never created"))?;
                self.now.insert(to.clone(), file);
                self.enter(to, end, Names::Move(from.clone(), to.clone()));
            }
            Operation::MakeFolder { name } => {
                self.folders.insert(name.clone());
            }
            Operation::RemoveFolder { name } => bail!("the folder {name} was removed"),
        }
        Ok(())
    }

    /// Writes an image of the disk after a loss of power into a new folder.
    pub fn write_image(&self, writeback: &Writeback, to: &Path) -> Result<()> {
        for folder in &self.folders {
            fs::create_dir_all(to.join(folder))?;
        }
        for (name, contents) in self.image(writeback) {
            let path = to.join(&name);
            fs::write(&path, contents)
                .with_context(|| format!("cannot write {}", path.display()))?;
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        }
        Ok(())
    }

    /// Errors when a folder does not hold what the trace says: the recorder has missed something.
    pub fn is_like(&self, folder: &Path) -> Result<()> {
        let expected = self.image(&Writeback::everything());
        let found = contents_of(folder, &mut BTreeSet::new())?;
        let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
        ensure!(
            names(&expected) == names(&found),
            "files {:?} by the trace, {:?} there",
            names(&expected),
            names(&found)
        );
        for (name, contents) in &found {
            ensure!(
                expected.get(name) == Some(contents),
                "{name} is not as the trace says"
            );
        }
        Ok(())
    }

    fn image(&self, writeback: &Writeback) -> BTreeMap<String, Vec<u8>> {
        let mut names = self.before.clone();
        let mut pending: HashMap<&str, usize> = HashMap::new();
        for entry in self.entries.iter().filter(|entry| !entry.is_durable) {
            *pending.entry(&entry.folder).or_default() += 1;
        }
        let place = |folder: &str| {
            folder
                .bytes()
                .fold(1, |sum, byte| mix(sum ^ u64::from(byte)))
        };
        let mut left: HashMap<&str, usize> = pending
            .iter()
            .map(|(folder, pending)| (*folder, writeback.count(u64::MAX, place(folder), *pending)))
            .collect();
        for entry in &self.entries {
            if !entry.is_durable {
                let left = left
                    .get_mut(entry.folder.as_str())
                    .expect("every folder was counted");
                if *left == 0 {
                    continue;
                }
                *left -= 1;
            }
            match &entry.change {
                Names::Put(name, file) => {
                    names.insert(name.clone(), *file);
                }
                Names::Remove(name) => {
                    names.remove(name);
                }
                Names::Move(from, to) => {
                    let moved = names.remove(from);
                    names.extend(moved.map(|file| (to.clone(), file)));
                }
            }
        }
        names.retain(|name, _| !name.ends_with(SHARED_MEMORY));
        names
            .into_iter()
            .map(|(name, file)| (name, self.files[file].after_a_crash(writeback)))
            .collect()
    }

    fn add(&mut self, contents: Bytes) -> usize {
        self.files
            .push(File::new(self.files.len() as u64, contents));
        self.files.len() - 1
    }

    fn enter(&mut self, name: &str, end: u64, change: Names) {
        self.entries.push(Entry {
            folder: parent(name).to_owned(),
            end,
            is_durable: false,
            change,
        });
    }

    fn node(&self, file: u64) -> Result<&Node> {
        self.nodes
            .get(&file)
            .context("an operation on a file that was never opened")
    }

    fn file(&mut self, file: u64) -> Result<&mut File> {
        match self.node(file)? {
            Node::File(file) => {
                let file = *file;
                Ok(&mut self.files[file])
            }
            Node::Folder(name) => bail!("the folder {name} was written like a file"),
        }
    }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Reads all files below a folder, and notes the folders.
fn contents_of(folder: &Path, folders: &mut BTreeSet<String>) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut contents = BTreeMap::new();
    let mut left = vec![String::new()];
    while let Some(within) = left.pop() {
        let entries = fs::read_dir(folder.join(&within))
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry
                .file_name()
                .into_string()
                .ok()
                .context("a name that is not UTF-8")?;
            let name = if within.is_empty() {
                name
            } else {
                format!("{within}/{name}")
            };
            if entry.file_type()?.is_dir() {
                folders.insert(name.clone());
                left.push(name);
            } else if !name.ends_with(SHARED_MEMORY) {
                contents.insert(name, fs::read(entry.path())?);
            }
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: u64 = 100;

    fn disk(operations: Vec<Operation>) -> Disk {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "old").unwrap();
        let mut disk = Disk::read(folder.path()).unwrap();
        disk.follow(&Record {
            end: 0,
            operation: Operation::OpenFolder {
                file: FOLDER,
                name: String::new(),
            },
        })
        .unwrap();
        for (end, operation) in (1..).zip(operations) {
            disk.follow(&Record { end, operation }).unwrap();
        }
        disk
    }

    /// The names that crashes may leave, each set once.
    fn crashes(disk: &Disk) -> BTreeSet<String> {
        let image = |seed| {
            disk.image(&Writeback::random(seed))
                .into_keys()
                .collect::<Vec<_>>()
                .join(" ")
        };
        (0..200).map(image).collect()
    }

    fn create(file: u64, name: &str) -> Operation {
        Operation::Create {
            file,
            name: name.to_owned(),
        }
    }

    fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(ToOwned::to_owned).into()
    }

    #[test]
    fn names_are_there_up_to_some_moment_until_their_folder_is_synced() {
        let rename = Operation::Rename {
            from: "new".to_owned(),
            to: "old".to_owned(),
        };
        let unlink = Operation::Unlink {
            name: "old".to_owned(),
        };
        let sync = Operation::Sync {
            file: FOLDER,
            covers: 2,
        };
        assert_eq!(
            crashes(&disk(vec![create(1, "new")])),
            names(["old", "new old"])
        );
        assert_eq!(
            crashes(&disk(vec![create(1, "new"), rename])),
            names(["old", "new old"])
        );
        assert_eq!(
            crashes(&disk(vec![create(1, "new"), unlink, sync])),
            names(["new"])
        );
    }

    #[test]
    fn a_file_that_took_another_one_s_name_has_only_what_was_synced_of_it() {
        let disk = disk(vec![
            create(1, "new"),
            Operation::Write {
                file: 1,
                offset: 0,
                data: Bytes::from_static(b"contents"),
            },
            Operation::Rename {
                from: "new".to_owned(),
                to: "old".to_owned(),
            },
            Operation::Sync {
                file: FOLDER,
                covers: 9,
            },
        ]);
        let image = |seed| disk.image(&Writeback::random(seed)).remove("old").unwrap();
        let contents: BTreeSet<_> = (0..200).map(image).collect();
        assert!(
            contents.contains(&b""[..]) && contents.contains(&b"contents"[..]),
            "{contents:?}"
        );
    }

    #[test]
    fn the_number_of_a_deleted_file_is_another_file_s_later() {
        let disk = disk(vec![
            create(1, "a"),
            Operation::Unlink {
                name: "a".to_owned(),
            },
            create(1, "b"),
            Operation::Write {
                file: 1,
                offset: 0,
                data: Bytes::from_static(b"b"),
            },
            Operation::Sync { file: 1, covers: 4 },
        ]);
        let image = disk.image(&Writeback::everything());
        assert_eq!(image.get("b").map(Vec::as_slice), Some(&b"b"[..]));
        assert!(!image.contains_key("a"));
        let lost = |seed| {
            disk.image(&Writeback::random(seed))
                .remove("a")
                .is_none_or(|contents| contents.is_empty())
        };
        assert!((0..50).all(lost));
    }
}
