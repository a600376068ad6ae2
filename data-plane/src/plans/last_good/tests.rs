//! Plans on disk, and those that are found there after damage, restarts and new keys.

use std::io::Write;

use kanat_model::id::EpochId;
use kanat_plan_stream::{Hash, Kind};
use kanat_proto::node::v1::{Resource, TableChange, TableEntry};
use kanat_proto::plan::v1::LookupTable;
use kanat_proto::plan::v1::lookup_table::Entry;
use tempfile::TempDir;

use super::*;
use crate::plans::change::{CompiledChange, EnvironmentChange, compile_change};

struct Fixture {
    folder: TempDir,
    last_good: LastGoodStore,
    environment: Environment,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let last_good = open(folder.path());
        let environment =
            Environment::empty(EnvironmentId::from("env_1"), EpochId::from("epoch_1"));
        Self {
            folder,
            last_good,
            environment,
        }
    }

    /// Saves the next generation, which has this table in it.
    fn put(&mut self, table: &LookupTable) {
        let body = table.encode_to_vec();
        let id = Kind::LookupTable.resource_id(&table.id);
        let upserts = vec![Resource {
            id,
            hash: Hash::of(&body).to_vec(),
            body: body.into(),
        }];
        let applied = self.applied(upserts);
        self.environment = applied.environment;
        self.last_good
            .save(&self.environment, &applied.accepted)
            .unwrap();
    }

    /// The next generation, which has these resources in it.
    fn applied(&self, upserts: Vec<Resource>) -> CompiledChange {
        compile_change(
            &self.environment,
            EnvironmentChange {
                epoch: self.environment.epoch.clone(),
                generation: self.environment.generation + 1,
                upserts,
                removals: Vec::new(),
            },
        )
    }

    /// Appends the next generation as a former build does, in which an entry of the table, which
    /// has no other, has another value.
    fn change_as_a_former_build(&mut self, table: &str, version: u32, value: &str) {
        let id = Kind::LookupTable.resource_id(table);
        let held = self
            .environment
            .to_resources()
            .find(|resource| resource.id == id)
            .unwrap();
        let entries = vec![entry("key", value)];
        let next = LookupTable {
            version,
            entries,
            ..LookupTable::decode(held.body).unwrap()
        };
        let former = self.environment.clone();
        let body = next.encode_to_vec();
        let resource = Resource {
            id: id.clone(),
            hash: Hash::of(&body).to_vec(),
            body: body.into(),
        };
        let hash = resource.hash.clone();
        self.environment = self.applied(vec![resource]).environment;
        let upserts = vec![TableEntry {
            key: "key".to_owned(),
            value: value.to_owned(),
        }];
        let change = TableChange {
            resource_id: id,
            from_hash: held.hash,
            hash,
            version,
            upserts,
            removals: vec!["none".to_owned()],
        };
        let delta = Delta {
            environment_id: self.environment.id.to_string(),
            epoch: self.environment.epoch.to_string(),
            from_generation: former.generation,
            generation: self.environment.generation,
            set_hash: self.environment.set_hash.to_vec(),
            tables: vec![change],
            ..Delta::default()
        };
        self.last_good.save(&self.environment, &delta).unwrap();
    }

    fn files(&self) -> Vec<PathBuf> {
        files(&self.folder.path().join("env_1"))
            .into_iter()
            .map(|(_, path)| path)
            .collect()
    }

    /// As a new process does, the next change begins a file.
    fn restart(&mut self) {
        self.last_good = open(self.folder.path());
    }

    fn found(&self) -> Option<EnvironmentSet> {
        open(self.folder.path()).load().sets.pop()
    }
}

fn open(folder: &Path) -> LastGoodStore {
    LastGoodStore::new(
        folder.to_owned(),
        Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap()),
    )
}

fn entry(key: &str, value: &str) -> Entry {
    Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn table(id: &str) -> LookupTable {
    LookupTable {
        id: id.to_owned(),
        name: id.to_owned(),
        ..LookupTable::default()
    }
}

#[test]
fn finds_the_last_generation_of_what_was_saved() {
    let mut saved = Fixture::new();
    assert!(saved.found().is_none());
    for n in 0..10 {
        saved.put(&table(&format!("lt_{}", n % 7)));
    }
    let found = saved.found().unwrap();
    assert_eq!(found.generation, 10);
    assert_eq!(found.set_hash, saved.environment.set_hash);
    assert_eq!(found.resources.len(), 7);
    assert_eq!(saved.files().len(), 1);
}

#[test]
fn a_change_that_was_cut_short_is_as_if_it_had_not_been() {
    let mut saved = Fixture::new();
    saved.put(&table("lt_1"));
    let path = saved.files().pop().unwrap();
    let whole = fs::metadata(&path).unwrap().len();
    saved.put(&table("lt_2"));
    let full = fs::metadata(&path).unwrap().len();
    for length in [full - 1, whole + 5, whole + 3] {
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        let found = saved.found().unwrap();
        assert_eq!(found.generation, 1);
        assert_eq!(found.resources.len(), 1);
    }
    // Garbage after it is passed over as well.
    File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(&[0xff; 100])
        .unwrap();
    assert_eq!(saved.found().unwrap().generation, 1);
}

#[test]
fn three_files_are_kept_and_an_older_one_stands_in_for_a_damaged_one() {
    let mut saved = Fixture::new();
    for n in 0..5 {
        saved.put(&table(&format!("lt_{n}")));
        saved.restart();
    }
    let files = saved.files();
    assert_eq!(files.len(), 3);
    assert_eq!(saved.found().unwrap().generation, 5);
    fs::write(&files[2], b"damaged").unwrap();
    assert_eq!(saved.found().unwrap().generation, 4);
    // A file does not pass for another.
    fs::copy(&files[0], &files[1]).unwrap();
    assert_eq!(saved.found().unwrap().generation, 3);
}

#[test]
fn a_file_that_outgrew_its_set_is_followed_by_a_new_one() {
    let mut saved = Fixture::new();
    let entry = entry(&"k".repeat(400_000), "");
    for version in 0..6 {
        saved.put(&LookupTable {
            version,
            entries: vec![entry.clone()],
            ..table("lt_1")
        });
    }
    assert_eq!(saved.files().len(), 2);
    let found = saved.found().unwrap();
    assert_eq!(found.generation, 6);
    assert_eq!(found.set_hash, saved.environment.set_hash);
}

#[test]
fn a_set_of_several_records_comes_back_whole() {
    let mut saved = Fixture::new();
    let entry = entry(&"k".repeat(3 << 20), "");
    for n in 0..3 {
        saved.restart();
        saved.put(&LookupTable {
            entries: vec![entry.clone()],
            ..table(&format!("lt_{n}"))
        });
    }
    assert_eq!(saved.found().unwrap().resources.len(), 3);
}

#[test]
fn an_older_file_that_cannot_be_removed_keeps_no_plans_from_being_saved() {
    let mut saved = Fixture::new();
    saved.put(&table("lt_1"));
    let oldest = saved.folder.path().join("env_1/0000000001.plans");
    fs::remove_file(&oldest).unwrap();
    fs::create_dir(&oldest).unwrap();
    for n in 0..3 {
        saved.restart();
        saved.put(&table(&format!("lt_{n}")));
    }
    assert_eq!(saved.found().unwrap().set_hash, saved.environment.set_hash);
}

#[test]
fn what_another_key_sealed_is_not_found() {
    let mut saved = Fixture::new();
    saved.put(&table("lt_1"));
    let mut other = LastGoodStore::new(
        saved.folder.path().to_owned(),
        Arc::new(Sealer::from_keys(&[[8; 32]]).unwrap()),
    );
    assert!(other.load().sets.is_empty());
}

/// Returns what a node with this key alone finds at its start, at which it seals files anew.
fn found_at_start(folder: &Path, key: [u8; 32]) -> Option<EnvironmentSet> {
    let sealer = Arc::new(Sealer::from_keys(&[key]).unwrap());
    let mut store = LastGoodStore::new(folder.to_owned(), sealer);
    let found = store.load().sets.pop();
    store.reseal().unwrap();
    found
}

#[test]
fn a_start_with_a_wrong_key_leaves_the_plans_for_the_right_one() {
    let mut saved = Fixture::new();
    saved.put(&table("lt_1"));
    let folder = saved.folder.path();
    assert!(found_at_start(folder, [8; 32]).is_none());
    let found = found_at_start(folder, [7; 32]).unwrap();
    assert_eq!(found.set_hash, saved.environment.set_hash);
}

#[test]
fn what_a_former_key_sealed_is_sealed_anew_and_goes_on_from_there() {
    let mut saved = Fixture::new();
    saved
        .last_good
        .note_served(&[EnvironmentId::from("env_1")])
        .unwrap();
    for n in 0..3 {
        saved.restart();
        saved.put(&table(&format!("lt_{n}")));
    }
    saved.put(&table("lt_3"));
    let ring = |keys: &[[u8; 32]]| Arc::new(Sealer::from_keys(keys).unwrap());
    let both = ring(&[[8; 32], [7; 32]]);
    saved.last_good.sealer.replace(&both);
    saved.put(&table("lt_4"));
    assert_eq!(saved.last_good.reseal().unwrap(), 2);
    assert_eq!(saved.last_good.reseal().unwrap(), 0);
    saved.last_good.sealer.replace(&ring(&[[8; 32]]));
    saved.put(&table("lt_5"));
    let found = LastGoodStore::new(saved.folder.path().to_owned(), ring(&[[8; 32]])).load();
    let set = &found.sets[0];
    assert_eq!(set.generation, 6);
    assert_eq!(set.set_hash, saved.environment.set_hash);
    assert_eq!(set.resources.len(), 6);
    assert_eq!(found.served.unwrap(), [EnvironmentId::from("env_1")]);
    let mut former = LastGoodStore::new(saved.folder.path().to_owned(), ring(&[[7; 32]]));
    let left = former.load();
    assert!(left.sets.is_empty() && left.served.is_none());
}

#[test]
fn its_folders_are_their_owner_s_alone() {
    let mut saved = Fixture::new();
    let plans = saved.folder.path().join("data/plans");
    saved.last_good = open(&plans);
    saved.last_good.note_served(&[]).unwrap();
    saved.put(&table("lt_1"));
    for folder in [
        plans.join("env_1"),
        plans.clone(),
        saved.folder.path().join("data"),
    ] {
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
}

#[test]
fn an_id_that_is_no_plain_name_stays_in_the_folder() {
    let mut saved = Fixture::new();
    saved.environment.id = EnvironmentId::from("../../etc");
    saved.put(&table("lt_1"));
    assert_eq!(saved.found().unwrap().environment_id.as_str(), "../../etc");
    assert_eq!(folders(saved.folder.path()).len(), 1);
    saved.last_good.remove(&saved.environment.id).unwrap();
    assert!(saved.found().is_none());
}

#[test]
fn the_served_environments_are_remembered() {
    let mut saved = Fixture::new();
    assert_eq!(saved.last_good.load().served, None);
    let ids = vec![EnvironmentId::from("env_1"), EnvironmentId::from("env_2")];
    saved.last_good.note_served(&ids).unwrap();
    assert_eq!(open(saved.folder.path()).load().served, Some(ids));
    saved.last_good.note_served(&[]).unwrap();
    assert_eq!(open(saved.folder.path()).load().served, Some(Vec::new()));
}

#[test]
fn changes_of_entries_that_a_former_build_saved_are_worked_in() {
    let mut saved = Fixture::new();
    saved.put(&LookupTable {
        version: 1,
        entries: vec![entry("key", "of version 1")],
        ..table("lt_1")
    });
    saved.put(&table("lt_2"));
    for version in 2..=20 {
        saved.change_as_a_former_build("lt_1", version, &format!("of version {version}"));
    }
    saved.put(&table("lt_2"));
    let found = saved.found().unwrap();
    assert_eq!(found.generation, 22);
    assert_eq!(found.set_hash, saved.environment.set_hash);
    let lt_1 = found
        .resources
        .iter()
        .find(|resource| resource.id.ends_with("lt_1"))
        .unwrap();
    let body = LookupTable::decode(lt_1.body.clone()).unwrap();
    assert_eq!(body.version, 20);
    assert_eq!(body.entries, [entry("key", "of version 20")]);
}
