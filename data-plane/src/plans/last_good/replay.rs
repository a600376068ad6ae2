//! From the records of a file to the set that they end with. Pure.

use std::collections::HashMap;

use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::SetHash;
use kanat_plan_stream::snapshot::proven_hash;
use kanat_proto::node::v1::{Delta, Resource};
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

/// Works the records in one after another. The set is what stood at the last record whose set hash agrees; `None` when no
/// record's does.
pub fn of(records: impl Iterator<Item = Vec<u8>>) -> Option<Set> {
    let mut replay = Replay::default();
    let mut set = None;
    let mut pending = Vec::new();
    for record in records {
        let Ok(delta) = Delta::decode(record.as_slice()) else { break };
        let is_last = !delta.set_hash.is_empty();
        pending.push(delta);
        if is_last {
            match replay.apply(std::mem::take(&mut pending)) {
                Some(head) => set = Some(head),
                None => break,
            }
        }
    }
    let Head { environment_id, epoch, generation, set_hash } = set?;
    Some(Set { environment_id, epoch, generation, set_hash, resources: replay.resources.into_values().collect() })
}

#[derive(Default)]
struct Replay {
    resources: HashMap<String, Resource>,
    hash: SetHash,
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
        let mut changes: HashMap<String, Option<Resource>> = HashMap::new();
        let mut head = None;
        for delta in deltas {
            head = Some(Head {
                environment_id: EnvironmentId::new(delta.environment_id),
                epoch: EpochId::new(delta.epoch),
                generation: delta.generation,
                set_hash: SetHash::from_slice(&delta.set_hash).unwrap_or_default(),
            });
            let upserts = delta.upserts.into_iter().map(|resource| (resource.id.clone(), Some(resource)));
            changes.extend(upserts.chain(delta.removals.into_iter().map(|id| (id, None))));
        }
        let head = head?;
        for (id, after) in &changes {
            if let Some(before) = self.resources.get(id) {
                hash = hash.toggled(id, proven_hash(before).ok()?);
            }
            if let Some(after) = after {
                hash = hash.toggled(id, proven_hash(after).ok()?);
            }
        }
        if hash != head.set_hash {
            return None;
        }
        for (id, after) in changes {
            match after {
                Some(resource) => self.resources.insert(id, resource),
                None => self.resources.remove(&id),
            };
        }
        self.hash = hash;
        Some(head)
    }
}
