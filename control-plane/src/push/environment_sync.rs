//! State of one environment on one node, and the decision what to send next. Pure: `session` has
//! the stream.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kanat_model::id::EpochId;
use kanat_plan_stream::{Hash, SetHash};
use kanat_proto::node::v1::{Ack, EnvironmentState, Nack, Rejection, Resource};

use super::nodes::SetVersion;
use super::refusals::{Refusal, Withheld};
use super::set::{PlanSet, ResourceEntry};

/// Size of the bodies of a delta above which a snapshot is sent, whose chunks keep the stream
/// responsive; in bytes.
const MAX_DELTA_BYTES: usize = 8 << 20;

/// Synchronisation of one environment with one node: the set that the node holds, and the push in
/// flight.
#[derive(Debug, Default)]
pub struct EnvironmentSync {
    held: Option<HeldSet>,
    in_flight: Option<Push>,
    /// True if a snapshot was answered with another hash. One more is sent; if its answer has
    /// another hash too, the stream ends.
    snapshot_failed: bool,
    /// The set that the node refused as a whole; it is not sent again.
    refused: Option<RefusedSet>,
}

/// Set that the node holds, as a known set and the resources in which it differs.
#[derive(Debug)]
struct HeldSet {
    base: Arc<PlanSet>,
    /// Generation of the node, which may be older than that of the base.
    generation: u64,
    hash: SetHash,
    /// By resource id, the hash that the node runs instead of the base's; `None` when it runs
    /// nothing.
    deviations: HashMap<String, Option<Hash>>,
}

/// Set that the node refused as a whole.
#[derive(Debug)]
struct RefusedSet {
    epoch: EpochId,
    generation: u64,
    reason: String,
}

/// A push that waits for its answer.
#[derive(Debug, Clone)]
pub struct Push {
    pub nonce: u64,
    pub set: Arc<PlanSet>,
    pub kind: PushKind,
    /// Hash of the node's whole set after the push.
    pub set_hash: SetHash,
    deviations: HashMap<String, Option<Hash>>,
}

/// Kind of a push.
#[derive(Debug, Clone)]
pub enum PushKind {
    /// All of this set: the push's own without the resources whose plan schema the build lacks.
    Snapshot(Arc<PlanSet>),
    Delta {
        from_generation: u64,
        upserts: Vec<Resource>,
        removals: Vec<String>,
    },
}

/// Outcome of an ack, a nack or a heartbeat of a node.
#[derive(Debug, PartialEq)]
pub enum SyncOutcome {
    /// The node runs the generation without the refused content of these resources.
    Applied {
        generation: u64,
        refused: Vec<(String, Refusal)>,
    },
    /// The node kept what it had, for this reason.
    Refused(String),
    /// The message changes nothing: an answer that matches no push in flight, or a heartbeat that
    /// shows no mismatch.
    NoEffect,
    /// The node runs another set than the one it was sent: a snapshot follows.
    Mismatch,
    /// The node runs another set than the one it was sent, after two snapshots in a row: the
    /// stream is ended.
    Broken,
}

impl EnvironmentSync {
    /// Creates the state of a node that claims to hold `state`, while the set is `current`.
    pub fn new(state: Option<&EnvironmentState>, current: &Arc<PlanSet>) -> Self {
        Self {
            held: state.and_then(|state| HeldSet::from_state(state, current)),
            ..Self::default()
        }
    }

    /// Returns the version of the set that the node runs, if it is known.
    pub fn version(&self) -> Option<SetVersion> {
        self.held.as_ref().map(|held| SetVersion {
            epoch: held.base.epoch.clone(),
            generation: held.generation,
        })
    }

    /// Returns the hash of the set that the node runs.
    pub fn set_hash(&self) -> Option<SetHash> {
        self.held.as_ref().map(|held| held.hash)
    }

    /// Returns why the node refused the last set as a whole, if it did.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| refused.reason.as_str())
    }

    /// Returns the epoch, generation and hash that the node should run by the last push; `None`
    /// before the first push, and when the node refused the last one.
    pub fn target(&self) -> Option<(&EpochId, u64, SetHash)> {
        match (&self.in_flight, &self.held) {
            (Some(push), _) => Some((&push.set.epoch, push.set.generation, push.set_hash)),
            (None, Some(held)) if self.refused.is_none() => {
                Some((&held.base.epoch, held.generation, held.hash))
            }
            (None, _) => None,
        }
    }

    /// Returns the resources of which the node runs another content than the set has, with the
    /// set's entries.
    pub fn deviations(&self) -> impl Iterator<Item = (&str, Option<&ResourceEntry>)> {
        let held = self.held.iter();
        held.flat_map(|held| {
            held.deviations
                .keys()
                .map(|id| (id.as_str(), held.base.get(id).map(Arc::as_ref)))
        })
    }

    /// Returns whether a push waits for its answer.
    pub fn has_push_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Returns the push to send now; `None` while another one waits for its answer, when the node
    /// runs the set already, and when it refused this set as a whole.
    pub fn next(
        &mut self,
        current: &Arc<PlanSet>,
        withheld: &Withheld<'_>,
        nonce: u64,
    ) -> Option<Push> {
        let refused = self
            .refused
            .as_ref()
            .map(|refused| (&refused.epoch, refused.generation));
        let is_refused = refused == Some((&current.epoch, current.generation));
        if self.has_push_in_flight() || is_refused {
            return None;
        }
        let push = match &self.held {
            Some(held) if held.can_reach_by_delta(current) => {
                held.delta(current, withheld, nonce)?
            }
            Some(_) | None => Push::snapshot(current, withheld, nonce),
        };
        self.in_flight = Some(push.clone());
        Some(push)
    }

    /// Makes the next push a snapshot: the set of the node is not known.
    pub fn require_snapshot(&mut self) {
        self.held = None;
        self.in_flight = None;
        self.refused = None;
    }

    /// Compares a heartbeat with the set that the node is known to run. A heartbeat of another
    /// epoch or generation has no effect, because it may have been sent before the last answer.
    /// Another hash of the same generation is a mismatch, and a snapshot follows. A node that stays
    /// at another generation finds that itself, by two heartbeats of the control plane, and asks
    /// for a snapshot.
    pub fn handle_heartbeat(&mut self, state: &EnvironmentState) -> SyncOutcome {
        let is_other = |held: &mut HeldSet| {
            (state.epoch.as_str(), state.generation) == (held.base.epoch.as_str(), held.generation)
                && SetHash::from_slice(&state.set_hash) != Some(held.hash)
        };
        // A push in flight may be live already.
        let is_other = self.in_flight.is_none() && self.held.take_if(is_other).is_some();
        if is_other {
            SyncOutcome::Mismatch
        } else {
            SyncOutcome::NoEffect
        }
    }

    /// Handles an ack: the node runs all of the push.
    pub fn handle_ack(&mut self, ack: &Ack) -> SyncOutcome {
        self.complete(ack.nonce, ack.generation, &ack.set_hash, &[])
    }

    /// Handles a nack: the node refused some of the push, or all of it; then a rejection names no
    /// resource.
    pub fn handle_nack(&mut self, nack: &Nack) -> SyncOutcome {
        let names_no_resource = nack
            .rejections
            .iter()
            .any(|rejection| rejection.resource_id.is_empty());
        let of_whole = |push: &mut Push| {
            push.nonce == nack.nonce
                && (names_no_resource || push.set.generation != nack.generation)
        };
        if let Some(push) = self.in_flight.take_if(of_whole) {
            let reasons: Vec<_> = nack.rejections.iter().map(|r| r.message.as_str()).collect();
            let epoch = push.set.epoch.clone();
            let generation = push.set.generation;
            let reason = reasons.join("; ");
            self.refused = Some(RefusedSet {
                epoch,
                generation,
                reason: reason.clone(),
            });
            return SyncOutcome::Refused(reason);
        }
        self.complete(
            nack.nonce,
            nack.generation,
            &nack.set_hash,
            &nack.rejections,
        )
    }

    /// Ends the push in flight.
    fn complete(
        &mut self,
        nonce: u64,
        generation: u64,
        set_hash: &[u8],
        rejections: &[Rejection],
    ) -> SyncOutcome {
        let Some(push) = self
            .in_flight
            .take_if(|push| push.nonce == nonce && push.set.generation == generation)
        else {
            return SyncOutcome::NoEffect;
        };
        let mut deviations = push.deviations;
        let mut refused = Vec::new();
        for rejection in rejections {
            let Some(hash) = Hash::from_slice(&rejection.hash) else {
                continue;
            };
            let id = &rejection.resource_id;
            let message = rejection.message.clone();
            deviations.insert(id.clone(), Hash::from_slice(&rejection.running_hash));
            refused.push((id.clone(), Refusal { hash, message }));
        }
        let hash = hash_of(&push.set, &deviations);
        if SetHash::from_slice(set_hash) != Some(hash) {
            self.held = None;
            let again = matches!(push.kind, PushKind::Snapshot(_))
                && std::mem::replace(&mut self.snapshot_failed, true);
            return if again {
                SyncOutcome::Broken
            } else {
                SyncOutcome::Mismatch
            };
        }
        self.snapshot_failed = false;
        self.refused = None;
        self.held = Some(HeldSet {
            base: push.set,
            generation,
            hash,
            deviations,
        });
        SyncOutcome::Applied {
            generation,
            refused,
        }
    }
}

impl HeldSet {
    /// Reads the state that a node claims to hold; `None` when a delta cannot start from it.
    fn from_state(state: &EnvironmentState, current: &Arc<PlanSet>) -> Option<Self> {
        if state.resources.is_empty() && state.set_hash == current.hash.to_vec() {
            return Self::from_hash(state, current);
        }
        let held: Option<HashMap<_, _>> = state
            .resources
            .iter()
            .map(|r| Some((r.id.clone(), Hash::from_slice(&r.hash)?)))
            .collect();
        let held = held?;
        let hash = SetHash::of(held.iter().map(|(id, hash)| (id.as_str(), *hash)));
        let sound = state.epoch == current.epoch.as_str()
            && state.generation <= current.generation
            && SetHash::from_slice(&state.set_hash) == Some(hash);
        let deviations = current.deviations(&held);
        sound.then(|| Self {
            base: Arc::clone(current),
            generation: state.generation,
            hash,
            deviations,
        })
    }

    /// Reads the state of a node that holds too many resources to name them: its hash is that of
    /// the current set.
    fn from_hash(state: &EnvironmentState, current: &Arc<PlanSet>) -> Option<Self> {
        let sound = state.epoch == current.epoch.as_str() && state.generation <= current.generation;
        let base = Arc::clone(current);
        let generation = state.generation;
        let hash = current.hash;
        sound.then(|| Self {
            base,
            generation,
            hash,
            deviations: HashMap::new(),
        })
    }

    /// Returns whether a delta can lead from this set to `current`, which has the same epoch and no
    /// lower generation.
    fn can_reach_by_delta(&self, current: &PlanSet) -> bool {
        self.base.epoch == current.epoch && self.generation <= current.generation
    }

    fn running(&self, id: &str) -> Option<Hash> {
        match self.deviations.get(id) {
            Some(deviation) => *deviation,
            None => self.base.get(id).map(|entry| entry.hash),
        }
    }

    /// Returns the push that leads to `current`; `None` when the node runs it.
    fn delta(&self, current: &Arc<PlanSet>, withheld: &Withheld<'_>, nonce: u64) -> Option<Push> {
        if Arc::ptr_eq(&self.base, current)
            && self.deviations.is_empty()
            && self.generation == current.generation
        {
            return None;
        }
        let mut ids: HashSet<&str> = self.base.maybe_differing(current);
        ids.extend(self.deviations.keys().map(String::as_str));
        let mut upserts = Vec::new();
        let mut removals = Vec::new();
        let mut deviations = HashMap::new();
        let mut bytes = 0;
        for id in ids {
            let running = self.running(id);
            match current.get(id) {
                Some(entry) if running == Some(entry.hash) => {}
                Some(entry) if withheld.contains(id, entry) => {
                    deviations.insert(id.to_owned(), running);
                }
                Some(entry) => {
                    bytes += entry.body.len();
                    upserts.push(entry.to_resource(id));
                }
                None if running.is_some() => removals.push(id.to_owned()),
                None => {}
            }
        }
        if upserts.is_empty() && removals.is_empty() && self.generation == current.generation {
            return None;
        }
        if bytes > MAX_DELTA_BYTES || (current.is_empty() && !removals.is_empty()) {
            return Some(Push::snapshot(current, withheld, nonce));
        }
        upserts.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        removals.sort_unstable();
        let kind = PushKind::Delta {
            from_generation: self.generation,
            upserts,
            removals,
        };
        let set_hash = hash_of(current, &deviations);
        Some(Push {
            nonce,
            set: Arc::clone(current),
            kind,
            set_hash,
            deviations,
        })
    }
}

impl Push {
    /// Creates a push of all resources whose plan schema the build supports. The node has no others
    /// afterwards. It includes content that the build refused: the node would otherwise remove the
    /// earlier content, which it runs.
    fn snapshot(set: &Arc<PlanSet>, withheld: &Withheld<'_>, nonce: u64) -> Self {
        let lacking = set
            .iter()
            .filter(|(_, entry)| withheld.lacks(entry))
            .map(|(id, _)| id.to_owned());
        let deviations: HashMap<_, _> = lacking.map(|id| (id, None)).collect();
        let sent = if deviations.is_empty() {
            Arc::clone(set)
        } else {
            set.without(withheld.plan_schemas(), deviations.keys())
        };
        Self {
            nonce,
            set: Arc::clone(set),
            set_hash: sent.hash,
            kind: PushKind::Snapshot(sent),
            deviations,
        }
    }
}

/// Returns the hash of `set` with the deviations in the place of its own entries.
fn hash_of(set: &PlanSet, deviations: &HashMap<String, Option<Hash>>) -> SetHash {
    deviations.iter().fold(set.hash, |hash, (id, running)| {
        let own = set.get(id).map(|entry| entry.hash);
        hash.replaced(id, own, *running)
    })
}

#[cfg(test)]
mod tests;
