//! Replays the records of a file to the set that they end with. Pure.

use std::collections::HashMap;

use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::parts::{self, Edit};
use kanat_plan_stream::snapshot::verify_hash;
use kanat_plan_stream::{Hash, SetHash};
use kanat_proto::node::v1::{Delta, Resource, TableChange};
use kanat_proto::plan::v1::LookupTable;
use prost::Message;

/// All resources of an environment at one generation, with checked hashes.
#[derive(Debug, Clone)]
pub struct EnvironmentSet {
    pub environment_id: EnvironmentId,
    pub epoch: EpochId,
    pub generation: u64,
    pub set_hash: SetHash,
    /// In the order in which they were saved.
    pub resources: Vec<Resource>,
}

/// Replays records in their order. Returns the set after the last record whose set hash matches;
/// `None` when there is no such record, or a lookup table does not have the hash that was saved.
pub fn of(records: impl Iterator<Item = Vec<u8>>) -> Option<EnvironmentSet> {
    let mut replay = Replay::default();
    let mut set = None;
    let mut pending = Vec::new();
    for record in records {
        let Ok(delta) = Delta::decode(record.as_slice()) else {
            break;
        };
        let is_last = !delta.set_hash.is_empty();
        pending.push(delta);
        if is_last {
            match replay.apply(std::mem::take(&mut pending)) {
                Some(header) => set = Some(header),
                None => break,
            }
        }
    }
    let SetHeader {
        environment_id,
        epoch,
        generation,
        set_hash,
    } = set?;
    let mut resources: Vec<_> = replay.resources.into_values().collect();
    resources.sort_unstable_by_key(|saved| saved.position);
    let resources = resources
        .into_iter()
        .map(SavedResource::into_resource)
        .collect::<Option<_>>()?;
    Some(EnvironmentSet {
        environment_id,
        epoch,
        generation,
        set_hash,
        resources,
    })
}

#[derive(Default)]
struct Replay {
    resources: HashMap<String, SavedResource>,
    /// Number of resources in the records so far.
    count: u64,
    hash: SetHash,
}

/// A resource, and the changes of its entries that follow it in the records of a former build:
/// perhaps thousands of them for a large table, which are applied together.
#[derive(Clone)]
struct SavedResource {
    /// Position of the resource among those of all records.
    position: u64,
    resource: Resource,
    /// Hash of the body after all changes.
    hash: Hash,
    changes: Vec<TableChange>,
}

/// Environment, set version and hash that a replayed group of records leads to, as the last delta
/// of the group has them.
struct SetHeader {
    environment_id: EnvironmentId,
    epoch: EpochId,
    generation: u64,
    set_hash: SetHash,
}

impl Replay {
    /// Applies all of these deltas or, when they do not lead to the set hash of the last one, none.
    fn apply(&mut self, deltas: Vec<Delta>) -> Option<SetHeader> {
        let mut hash = self.hash;
        let mut upserts: HashMap<String, Option<SavedResource>> = HashMap::new();
        let mut tables = Vec::new();
        let mut header = None;
        for delta in deltas {
            header = Some(SetHeader {
                environment_id: EnvironmentId::new(delta.environment_id),
                epoch: EpochId::new(delta.epoch),
                generation: delta.generation,
                set_hash: SetHash::from_slice(&delta.set_hash).unwrap_or_default(),
            });
            for resource in delta.upserts {
                let id = resource.id.clone();
                self.count += 1;
                upserts.insert(id, Some(SavedResource::new(self.count, resource)?));
            }
            upserts.extend(delta.removals.into_iter().map(|id| (id, None)));
            tables.extend(delta.tables);
        }
        let header = header?;
        for (id, after) in &upserts {
            let before = self.resources.get(id).map(|saved| saved.hash);
            hash = hash.replaced(id, before, after.as_ref().map(|saved| saved.hash));
        }
        for change in &tables {
            let before = self.resources.get(&change.resource_id)?.hash;
            let after = Hash::from_slice(&change.hash)
                .filter(|_| before.as_bytes() == change.from_hash.as_slice())?;
            hash = hash.replaced(&change.resource_id, Some(before), Some(after));
        }
        if hash != header.set_hash {
            return None;
        }
        for (id, after) in upserts {
            match after {
                Some(saved) => self.resources.insert(id, saved),
                None => self.resources.remove(&id),
            };
        }
        for change in tables {
            if let Some(saved) = self.resources.get_mut(&change.resource_id) {
                saved.hash = Hash::from_slice(&change.hash)?;
                saved.changes.push(change);
            }
        }
        self.hash = hash;
        Some(header)
    }
}

impl SavedResource {
    fn new(position: u64, resource: Resource) -> Option<Self> {
        Some(Self {
            position,
            hash: verify_hash(&resource).ok()?,
            resource,
            changes: Vec::new(),
        })
    }

    /// Returns the resource after all changes; `None` when its body is not the one that was saved.
    fn into_resource(self) -> Option<Resource> {
        let Some(last) = self.changes.last() else {
            return Some(self.resource);
        };
        let table = LookupTable::decode(self.resource.body).ok()?;
        let table = LookupTable {
            version: last.version,
            entries: parts::edited(table.entries, self.changes.into_iter().flat_map(edits)),
            ..table
        };
        let resource = Resource {
            id: self.resource.id,
            hash: self.hash.to_vec(),
            body: table.encode_to_vec().into(),
        };
        verify_hash(&resource).is_ok().then_some(resource)
    }
}

fn edits(change: TableChange) -> impl Iterator<Item = Edit> {
    let removals = change
        .removals
        .into_iter()
        .map(|key| Edit { key, value: None });
    let upserts = change.upserts.into_iter().map(|entry| Edit {
        key: entry.key,
        value: Some(entry.value),
    });
    removals.chain(upserts)
}
