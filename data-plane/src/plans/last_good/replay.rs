//! From the records of a file to the set that they end with. Pure.

use std::collections::HashMap;

use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::snapshot::proven_hash;
use kanat_plan_stream::{Hash, SetHash, table};
use kanat_proto::node::v1::{Delta, Resource, TableChange};
use prost::Message;

/// The resources of an environment as they were last saved.
#[derive(Debug, Clone)]
pub struct Set {
    pub environment_id: EnvironmentId,
    pub epoch: EpochId,
    pub generation: u64,
    pub set_hash: SetHash,
    pub resources: Vec<Resource>,
}

/// Works the records in one after another. The set is what stood at the last record whose set hash
/// agrees; `None` when no record's does, and when a lookup table does not come out as it was.
pub fn of(records: impl Iterator<Item = Vec<u8>>) -> Option<Set> {
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
                Some(head) => set = Some(head),
                None => break,
            }
        }
    }
    let Head {
        environment_id,
        epoch,
        generation,
        set_hash,
    } = set?;
    let resources = replay
        .resources
        .into_values()
        .map(Saved::into_resource)
        .collect::<Option<_>>()?;
    Some(Set {
        environment_id,
        epoch,
        generation,
        set_hash,
        resources,
    })
}

#[derive(Default)]
struct Replay {
    resources: HashMap<String, Saved>,
    hash: SetHash,
}

/// A resource, and what changed of it afterwards. A large table may have thousands of changes: they
/// become one, and the table is written and hashed once.
#[derive(Clone)]
struct Saved {
    resource: Resource,
    hash: Hash,
    changes: Vec<TableChange>,
}

struct Head {
    environment_id: EnvironmentId,
    epoch: EpochId,
    generation: u64,
    set_hash: SetHash,
}

impl Replay {
    /// All of these or, when they do not come out at the set hash of the last, none.
    fn apply(&mut self, deltas: Vec<Delta>) -> Option<Head> {
        let mut hash = self.hash;
        let mut upserts: HashMap<String, Option<Saved>> = HashMap::new();
        let mut tables = Vec::new();
        let mut head = None;
        for delta in deltas {
            head = Some(Head {
                environment_id: EnvironmentId::new(delta.environment_id),
                epoch: EpochId::new(delta.epoch),
                generation: delta.generation,
                set_hash: SetHash::from_slice(&delta.set_hash).unwrap_or_default(),
            });
            for resource in delta.upserts {
                upserts.insert(resource.id.clone(), Some(Saved::new(resource)?));
            }
            upserts.extend(delta.removals.into_iter().map(|id| (id, None)));
            tables.extend(delta.tables);
        }
        let head = head?;
        for (id, after) in &upserts {
            let pair = self
                .resources
                .get(id)
                .into_iter()
                .chain(after)
                .map(|saved| saved.hash);
            hash = pair.fold(hash, |hash, own| hash.toggled(id, own));
        }
        for change in &tables {
            let before = self.resources.get(&change.resource_id)?.hash;
            let after = Hash::from_slice(&change.hash)
                .filter(|_| before.as_bytes() == change.from_hash.as_slice())?;
            hash = hash
                .toggled(&change.resource_id, before)
                .toggled(&change.resource_id, after);
        }
        if hash != head.set_hash {
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
        Some(head)
    }
}

impl Saved {
    fn new(resource: Resource) -> Option<Self> {
        Some(Self {
            hash: proven_hash(&resource).ok()?,
            resource,
            changes: Vec::new(),
        })
    }

    /// As it is after all changes.
    fn into_resource(self) -> Option<Resource> {
        let Some(change) = table::merged(&self.changes) else {
            return Some(self.resource);
        };
        let body = table::changed(&self.resource.body, &change).ok()?;
        let resource = Resource {
            id: self.resource.id,
            hash: change.hash,
            body: body.into(),
        };
        proven_hash(&resource).is_ok().then_some(resource)
    }
}
