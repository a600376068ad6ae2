//! What one node holds of one environment, and what it is to be sent next. Pure: the stream itself
//! is elsewhere.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kanat_model::id::EpochId;
use kanat_plan_stream::{Hash, SetHash};
use kanat_proto::node::v1::{Ack, EnvironmentState, Nack, Resource};
use prost::Message;

use super::refusals::Withheld;
use super::set::{Entry, Set};

/// Bytes of bodies above which a delta goes out as a snapshot, whose chunks keep the stream
/// responsive.
const MAX_DELTA_BYTES: usize = 8 << 20;

/// One environment of one node's stream.
#[derive(Debug, Default)]
pub struct Peer {
    held: Option<Held>,
    in_flight: Option<Push>,
    /// A snapshot that came back with another hash than it had must not be followed by another:
    /// something is broken.
    snapshot_failed: bool,
    /// What the node refused as a whole, so that it is not sent again.
    refused: Option<Refused>,
}

/// What the node holds, told as a set of ours and the exceptions from it.
#[derive(Debug)]
struct Held {
    base: Arc<Set>,
    generation: u64,
    hash: SetHash,
    /// By resource id, the hash that the node runs instead of the base's; `None` when it runs
    /// nothing.
    exceptions: HashMap<String, Option<Hash>>,
}

/// A set that the node refused as a whole, and why.
#[derive(Debug)]
struct Refused {
    epoch: EpochId,
    generation: u64,
    reason: String,
}

/// A push that waits for its answer.
#[derive(Debug, Clone)]
pub struct Push {
    pub nonce: u64,
    pub set: Arc<Set>,
    pub kind: PushKind,
    /// Of the node's whole set, once the push is applied.
    pub set_hash: SetHash,
    exceptions: HashMap<String, Option<Hash>>,
}

/// How a push brings the node to its set.
#[derive(Debug, Clone)]
pub enum PushKind {
    /// All of this set, which is the push's own but for what is withheld.
    Snapshot(Arc<Set>),
    Delta {
        from_generation: u64,
        upserts: Vec<Resource>,
        removals: Vec<String>,
    },
}

/// What an answer of the node means.
#[derive(Debug, PartialEq)]
pub enum Answered {
    /// The node runs the generation, but for these resources: id, refused hash, reason.
    Applied {
        generation: u64,
        refused: Vec<(String, Hash, String)>,
    },
    /// The node kept what it had, for this reason.
    Refused(String),
    /// It answers no push of this stream that is still waiting.
    Stale,
    /// The node ended up with another set than it should: a snapshot follows.
    Mismatch,
    /// Even a snapshot left it with another set: the stream is of no use.
    Broken,
}

impl Peer {
    /// A node that says that it holds `state`, while the set is `current`.
    pub fn new(state: Option<&EnvironmentState>, current: &Arc<Set>) -> Self {
        Self {
            held: state.and_then(|state| Held::of(state, current)),
            ..Self::default()
        }
    }

    /// The epoch and generation that the node runs, when that is known.
    pub fn generation(&self) -> Option<(&EpochId, u64)> {
        self.held
            .as_ref()
            .map(|held| (&held.base.epoch, held.generation))
    }

    /// The hash of the set that the node runs.
    pub fn set_hash(&self) -> Option<SetHash> {
        self.held.as_ref().map(|held| held.hash)
    }

    /// Why the node refused the last set as a whole, if it did.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| refused.reason.as_str())
    }

    /// What the node should run by all that it was sent so far: its epoch, generation and hash.
    /// None before the first push, and when it refused the last.
    pub fn wanted(&self) -> Option<(&EpochId, u64, SetHash)> {
        match (&self.in_flight, &self.held) {
            (Some(push), _) => Some((&push.set.epoch, push.set.generation, push.set_hash)),
            (None, Some(held)) if self.refused.is_none() => {
                Some((&held.base.epoch, held.generation, held.hash))
            }
            (None, _) => None,
        }
    }

    /// Resources of which the node runs another content than the set has, and what the set has of
    /// them.
    pub fn exceptions(&self) -> impl Iterator<Item = (&str, Option<&Entry>)> {
        let held = self.held.iter();
        held.flat_map(|held| {
            held.exceptions
                .keys()
                .map(|id| (id.as_str(), held.base.get(id).map(Arc::as_ref)))
        })
    }

    /// Whether a push waits for its answer.
    pub fn waits(&self) -> bool {
        self.in_flight.is_some()
    }

    /// What to send now, if anything: nothing while a push waits for its answer.
    pub fn next(
        &mut self,
        current: &Arc<Set>,
        withheld: &Withheld<'_>,
        nonce: u64,
    ) -> Option<Push> {
        let refused = self
            .refused
            .as_ref()
            .map(|refused| (&refused.epoch, refused.generation));
        let is_refused = refused == Some((&current.epoch, current.generation));
        if self.waits() || is_refused {
            return None;
        }
        let push = match &self.held {
            Some(held) if held.leads_to(current) => held.delta(current, withheld, nonce)?,
            Some(_) | None => Push::snapshot(current, withheld, nonce),
        };
        self.in_flight = Some(push.clone());
        Some(push)
    }

    /// The node lost its footing: the next push is a snapshot.
    pub fn wants_snapshot(&mut self) {
        self.held = None;
        self.in_flight = None;
        self.refused = None;
    }

    /// Holds what a heartbeat tells against what the node was last known to run. One that came in
    /// before its last answer tells of an earlier generation; another set of the same generation is
    /// a mismatch, and a snapshot follows.
    pub fn beat(&mut self, state: &EnvironmentState) -> Answered {
        let is_other = |held: &mut Held| {
            (state.epoch.as_str(), state.generation) == (held.base.epoch.as_str(), held.generation)
                && SetHash::from_slice(&state.set_hash) != Some(held.hash)
        };
        // What is under way may be live already.
        let is_other = self.in_flight.is_none() && self.held.take_if(is_other).is_some();
        if is_other {
            Answered::Mismatch
        } else {
            Answered::Stale
        }
    }

    /// The node runs all of the push.
    pub fn acked(&mut self, ack: &Ack) -> Answered {
        self.answered(ack.nonce, ack.generation, &ack.set_hash, &[])
    }

    /// The node refused some of the push, or all of it: then a rejection names no resource.
    pub fn nacked(&mut self, nack: &Nack) -> Answered {
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
            self.refused = Some(Refused {
                epoch,
                generation,
                reason: reason.clone(),
            });
            return Answered::Refused(reason);
        }
        let refused: Vec<_> = nack
            .rejections
            .iter()
            .filter_map(|r| {
                let hash = Hash::from_slice(&r.hash)?;
                Some((
                    r.resource_id.clone(),
                    hash,
                    Hash::from_slice(&r.running_hash),
                    r.message.clone(),
                ))
            })
            .collect();
        self.answered(nack.nonce, nack.generation, &nack.set_hash, &refused)
    }

    fn answered(
        &mut self,
        nonce: u64,
        generation: u64,
        set_hash: &[u8],
        refused: &[(String, Hash, Option<Hash>, String)],
    ) -> Answered {
        let Some(push) = self
            .in_flight
            .take_if(|push| push.nonce == nonce && push.set.generation == generation)
        else {
            return Answered::Stale;
        };
        let mut exceptions = push.exceptions;
        exceptions.extend(
            refused
                .iter()
                .map(|(id, _, running, _)| (id.clone(), *running)),
        );
        let hash = hash_of(&push.set, &exceptions);
        if SetHash::from_slice(set_hash) != Some(hash) {
            self.held = None;
            let again = matches!(push.kind, PushKind::Snapshot(_))
                && std::mem::replace(&mut self.snapshot_failed, true);
            return if again {
                Answered::Broken
            } else {
                Answered::Mismatch
            };
        }
        self.snapshot_failed = false;
        self.refused = None;
        self.held = Some(Held {
            base: push.set,
            generation,
            hash,
            exceptions,
        });
        let refused = refused
            .iter()
            .map(|(id, hash, _, message)| (id.clone(), *hash, message.clone()))
            .collect();
        Answered::Applied {
            generation,
            refused,
        }
    }
}

impl Held {
    /// What the node says that it holds; `None` when a delta cannot start from it.
    fn of(state: &EnvironmentState, current: &Arc<Set>) -> Option<Self> {
        if state.resources.is_empty() && state.set_hash == current.hash.to_vec() {
            return Self::of_hash(state, current);
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
        let exceptions = current.exceptions(&held);
        sound.then(|| Self {
            base: Arc::clone(current),
            generation: state.generation,
            hash,
            exceptions,
        })
    }

    /// The same of a node that holds too much to name it all: good if it is what is to be run.
    fn of_hash(state: &EnvironmentState, current: &Arc<Set>) -> Option<Self> {
        let sound = state.epoch == current.epoch.as_str() && state.generation <= current.generation;
        let base = Arc::clone(current);
        let generation = state.generation;
        let hash = current.hash;
        sound.then(|| Self {
            base,
            generation,
            hash,
            exceptions: HashMap::new(),
        })
    }

    /// Whether a delta leads from here to `current`: of the same database, and not ahead of it.
    fn leads_to(&self, current: &Set) -> bool {
        self.base.epoch == current.epoch && self.generation <= current.generation
    }

    fn running(&self, id: &str) -> Option<Hash> {
        match self.exceptions.get(id) {
            Some(exception) => *exception,
            None => self.base.get(id).map(|entry| entry.hash),
        }
    }

    /// The way to `current`; `None` when the node is there.
    fn delta(&self, current: &Arc<Set>, withheld: &Withheld<'_>, nonce: u64) -> Option<Push> {
        if Arc::ptr_eq(&self.base, current)
            && self.exceptions.is_empty()
            && self.generation == current.generation
        {
            return None;
        }
        let mut ids: HashSet<&str> = self.base.differing(current);
        ids.extend(self.exceptions.keys().map(String::as_str));
        let mut upserts = Vec::new();
        let mut removals = Vec::new();
        let mut exceptions = HashMap::new();
        let mut bytes = 0;
        for id in ids {
            let running = self.running(id);
            match current.get(id) {
                Some(entry) if running == Some(entry.hash) => {}
                Some(entry) if withheld.contains(id, entry) => {
                    exceptions.insert(id.to_owned(), running);
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
        let set_hash = hash_of(current, &exceptions);
        Some(Push {
            nonce,
            set: Arc::clone(current),
            kind,
            set_hash,
            exceptions,
        })
    }
}

impl Push {
    /// All that the build can run; what it lacks the means for, it does not hold afterwards.
    fn snapshot(set: &Arc<Set>, withheld: &Withheld<'_>, nonce: u64) -> Self {
        let lacking = set
            .iter()
            .filter(|(_, entry)| withheld.lacks(entry))
            .map(|(id, _)| id.to_owned());
        let exceptions: HashMap<_, _> = lacking.map(|id| (id, None)).collect();
        let sent = if exceptions.is_empty() {
            Arc::clone(set)
        } else {
            set.without(withheld.schemas(), exceptions.keys())
        };
        Self {
            nonce,
            set: Arc::clone(set),
            set_hash: sent.hash,
            kind: PushKind::Snapshot(sent),
            exceptions,
        }
    }
}

/// The hash of `set` with the exceptions in the place of what it has.
fn hash_of(set: &Set, exceptions: &HashMap<String, Option<Hash>>) -> SetHash {
    exceptions.iter().fold(set.hash, |hash, (id, running)| {
        let own = set.get(id).map(|entry| entry.hash);
        own.into_iter()
            .chain(*running)
            .fold(hash, |hash, pair| hash.toggled(id, pair))
    })
}

#[cfg(test)]
mod tests;
