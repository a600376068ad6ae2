//! Set of the resources that the nodes of an environment run: those that the store had published at
//! one generation.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kanat_model::id::EpochId;
use kanat_plan_stream::snapshot::EncodedSnapshot;
use kanat_plan_stream::{Hash, PlanSchemaRange, SetHash, ShardedMap, plan_schema};
use kanat_proto::node::v1::Resource;
use parking_lot::Mutex;

/// Resources of one environment at one generation. Neighbouring generations share the unchanged
/// ones.
#[derive(Debug)]
pub struct PlanSet {
    pub epoch: EpochId,
    pub generation: u64,
    pub hash: SetHash,
    entries: ShardedMap<String, Arc<ResourceEntry>>,
    encoded: OnceLock<EncodedSnapshot>,
    /// Subsets for builds that lack the plan schema of some resources, by the plan schemas that
    /// these builds can run.
    subsets: Mutex<Vec<(PlanSchemaRange, Arc<PlanSet>)>>,
}

/// Resource of a set, with its secrets in the clear.
pub struct ResourceEntry {
    pub hash: Hash,
    /// Plan schema that a build must support to run it.
    pub required_plan_schema: u32,
    pub body: Bytes,
}

/// Maximum number of subsets; a rolling upgrade has fewer kinds of builds.
const MAX_SUBSETS: usize = 4;

/// Bodies hold secrets and stay out of logs.
impl std::fmt::Debug for ResourceEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResourceEntry({}, {} bytes)", self.hash, self.body.len())
    }
}

/// Change of one resource from one generation to a later one.
#[derive(Debug)]
pub enum ResourceChange {
    Upsert(ResourceEntry),
    Removal,
}

impl PlanSet {
    /// Creates a set of these resources.
    pub fn new(
        epoch: EpochId,
        generation: u64,
        resources: impl IntoIterator<Item = (String, ResourceEntry)>,
    ) -> Self {
        let entries: ShardedMap<_, _> = resources
            .into_iter()
            .map(|(id, entry)| (id, Arc::new(entry)))
            .collect();
        let hash = SetHash::of(entries.iter().map(|(id, entry)| (id.as_str(), entry.hash)));
        Self::of(epoch, generation, hash, entries)
    }

    fn of(
        epoch: EpochId,
        generation: u64,
        hash: SetHash,
        entries: ShardedMap<String, Arc<ResourceEntry>>,
    ) -> Self {
        Self {
            epoch,
            generation,
            hash,
            entries,
            encoded: OnceLock::new(),
            subsets: Mutex::default(),
        }
    }

    /// Returns the set after `changes`, at the cost of the changes.
    #[must_use]
    pub fn with_changes(
        &self,
        generation: u64,
        changes: impl IntoIterator<Item = (String, ResourceChange)>,
    ) -> Self {
        let mut entries = self.entries.clone();
        let mut hash = self.hash;
        for (id, change) in changes {
            let former = match change {
                ResourceChange::Upsert(entry) => {
                    hash = hash.toggled(&id, entry.hash);
                    entries.insert(id.clone(), Arc::new(entry))
                }
                ResourceChange::Removal => entries.remove(&id),
            };
            if let Some(former) = former {
                hash = hash.toggled(&id, former.hash);
            }
        }
        Self::of(self.epoch.clone(), generation, hash, entries)
    }

    /// Returns the set without the resources in `lacking`: those that builds of `plan_schemas`
    /// cannot run. The result is cached by `plan_schemas` alone, because they determine `lacking`.
    pub fn without<'a>(
        &self,
        plan_schemas: PlanSchemaRange,
        lacking: impl Iterator<Item = &'a String>,
    ) -> Arc<Self> {
        let mut made = self.subsets.lock();
        if let Some((_, set)) = made.iter().find(|(of, _)| *of == plan_schemas) {
            return Arc::clone(set);
        }
        if made.len() == MAX_SUBSETS {
            made.remove(0);
        }
        let set = Arc::new(self.with_changes(
            self.generation,
            lacking.map(|id| (id.clone(), ResourceChange::Removal)),
        ));
        made.push((plan_schemas, Arc::clone(&set)));
        set
    }

    pub fn get(&self, id: &str) -> Option<&Arc<ResourceEntry>> {
        self.entries.get(id)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether this set may replace a full one although it is empty. Generation 0, at which
    /// nothing was ever published, may not: the database may have been put in place by mistake.
    pub fn allows_empty(&self) -> bool {
        self.generation > 0
    }

    /// Returns ids that may differ between the two sets; all that do are among them.
    pub fn maybe_differing<'a>(&'a self, other: &'a Self) -> HashSet<&'a str> {
        let own = self
            .entries
            .unshared_entries(&other.entries)
            .map(|(id, _)| id.as_str());
        own.chain(
            other
                .entries
                .unshared_entries(&self.entries)
                .map(|(id, _)| id.as_str()),
        )
        .collect()
    }

    /// Returns every resource, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<ResourceEntry>)> {
        self.entries.iter().map(|(id, entry)| (id.as_str(), entry))
    }

    /// Returns the differences of a node's set from this one: by id, the hash that the node holds,
    /// or `None` if it lacks the resource.
    pub fn deviations(&self, held: &HashMap<String, Hash>) -> HashMap<String, Option<Hash>> {
        let missing = self
            .entries
            .iter()
            .filter(|(id, _)| !held.contains_key(*id))
            .map(|(id, _)| (id.clone(), None));
        let other = held
            .iter()
            .filter(|(id, hash)| self.get(id).is_none_or(|entry| entry.hash != **hash));
        missing
            .chain(other.map(|(id, hash)| (id.clone(), Some(*hash))))
            .collect()
    }

    /// Returns the encoded set for a snapshot. It is made once for all nodes.
    pub fn encoded(&self) -> &EncodedSnapshot {
        self.encoded.get_or_init(|| {
            let mut resources: Vec<_> = self
                .entries
                .iter()
                .map(|(id, entry)| entry.to_resource(id))
                .collect();
            resources.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            EncodedSnapshot::new(resources)
        })
    }
}

impl ResourceEntry {
    pub fn new(body: Bytes) -> Self {
        Self {
            hash: Hash::of(&body),
            required_plan_schema: plan_schema::required_by(&body),
            body,
        }
    }

    pub fn to_resource(&self, id: &str) -> Resource {
        Resource {
            id: id.to_owned(),
            hash: self.hash.to_vec(),
            body: self.body.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(generation: u64, resources: &[(&str, &'static str)]) -> PlanSet {
        let entries = resources
            .iter()
            .map(|(id, body)| ((*id).to_owned(), entry(body)));
        PlanSet::new(EpochId::from("epoch_1"), generation, entries)
    }

    fn entry(body: &'static str) -> ResourceEntry {
        ResourceEntry::new(Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn a_changed_set_has_the_hash_of_one_made_anew() {
        let before = set(1, &[("flow/1", "a"), ("flow/2", "b")]);
        let changes = [
            ("flow/1".to_owned(), ResourceChange::Upsert(entry("a2"))),
            ("flow/2".to_owned(), ResourceChange::Removal),
            ("flow/3".to_owned(), ResourceChange::Upsert(entry("c"))),
            ("flow/4".to_owned(), ResourceChange::Removal),
        ];
        let after = before.with_changes(2, changes);
        let anew = set(2, &[("flow/1", "a2"), ("flow/3", "c")]);
        assert_eq!(after.hash, anew.hash);
        assert_eq!(after.encoded().sha256(), anew.encoded().sha256());
        assert!(
            ["flow/1", "flow/2", "flow/3"]
                .iter()
                .all(|id| before.maybe_differing(&after).contains(id))
        );
    }

    #[test]
    fn exceptions_name_what_a_node_lacks_has_otherwise_and_has_too_much() {
        let set = set(1, &[("flow/1", "a"), ("flow/2", "b"), ("flow/3", "c")]);
        let other = Hash::of(b"other");
        let held = [
            ("flow/1", Hash::of(b"a")),
            ("flow/2", other),
            ("flow/9", other),
        ];
        let held = held
            .into_iter()
            .map(|(id, hash)| (id.to_owned(), hash))
            .collect();
        let expected = [
            ("flow/2", Some(other)),
            ("flow/3", None),
            ("flow/9", Some(other)),
        ];
        assert_eq!(
            set.deviations(&held),
            expected
                .into_iter()
                .map(|(id, h)| (id.to_owned(), h))
                .collect()
        );
    }
}
