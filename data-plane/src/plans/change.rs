//! Change of an environment, from a delta or a snapshot: compiles the new resources, refuses those
//! that cannot run, and returns the next environment. Pure: the caller makes it live.

mod compile;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use kanat_model::id::EpochId;
use kanat_plan_stream::snapshot::verify_hash;
use kanat_plan_stream::{Hash, Kind};
use kanat_proto::node::v1::{Delta, Rejection, Resource, SnapshotBegin};

use super::environment::{CompiledResource, Environment, HeldResource};
use super::snapshot::FlowChange;

/// Change of an environment to another generation.
#[derive(Debug)]
pub struct EnvironmentChange {
    pub epoch: EpochId,
    pub generation: u64,
    pub upserts: Vec<Resource>,
    pub removals: Vec<String>,
}

/// Outcome of a change of an environment. [`compile_change`] builds it resource by resource.
#[derive(Debug)]
pub struct CompiledChange {
    pub environment: Environment,
    pub flows: Vec<FlowChange>,
    /// Resources that were refused, and keep their former version.
    pub rejections: Vec<Rejection>,
    /// The applied part of the change: the accepted upserts and the removals.
    pub accepted: Delta,
}

/// Reason why a delta cannot be applied at all: a snapshot is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error(
        "the delta starts from generation {from} of {epoch}, and the node holds {held} of \
         {held_epoch}"
    )]
    Start {
        from: u64,
        epoch: EpochId,
        held: u64,
        held_epoch: EpochId,
    },
    #[error(transparent)]
    Resource(#[from] kanat_plan_stream::snapshot::Error),
    #[error("the delta does not lead to the set that was announced")]
    SetHash,
}

impl EnvironmentChange {
    /// Returns the change from `current` that a delta describes.
    ///
    /// # Errors
    /// The delta does not lead from `current` to the set that it announces.
    pub fn from_delta(current: &Environment, delta: Delta) -> Result<Self, Mismatch> {
        if delta.epoch != current.epoch.as_str() || delta.from_generation != current.generation {
            return Err(Mismatch::Start {
                from: delta.from_generation,
                epoch: EpochId::new(delta.epoch),
                held: current.generation,
                held_epoch: current.epoch.clone(),
            });
        }
        let hash_of = |id: &str| current.resources.get(id).map(|held| held.hash);
        let announced = delta.set_hash.clone();
        let mut set_hash = current.set_hash;
        let Delta {
            epoch,
            generation,
            upserts,
            removals,
            ..
        } = delta;
        for resource in &upserts {
            let after = Some(verify_hash(resource)?);
            set_hash = set_hash.replaced(&resource.id, hash_of(&resource.id), after);
        }
        for id in &removals {
            set_hash = set_hash.replaced(id, hash_of(id), None);
        }
        if set_hash.to_vec() != announced {
            return Err(Mismatch::SetHash);
        }
        Ok(Self {
            epoch: EpochId::new(epoch),
            generation,
            upserts,
            removals,
        })
    }

    /// Returns the change from `current` to a whole set, whose hashes were checked. Resources that
    /// are the same stay as they are.
    pub fn from_snapshot(
        current: &Environment,
        begin: &SnapshotBegin,
        resources: Vec<Resource>,
    ) -> Self {
        let kept: HashSet<&str> = resources
            .iter()
            .map(|resource| resource.id.as_str())
            .collect();
        let gone = current
            .resources
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !kept.contains(id.as_str()));
        let removals = gone.cloned().collect();
        let is_new = |resource: &Resource| {
            current
                .resources
                .get(&resource.id)
                .is_none_or(|held| held.hash.as_bytes() != resource.hash.as_slice())
        };
        let upserts = resources.into_iter().filter(is_new).collect();
        Self {
            epoch: EpochId::from(begin.epoch.as_str()),
            generation: begin.generation,
            upserts,
            removals,
        }
    }
}

/// Compiles `change` into the environment that follows `current`. Removals always apply; a resource
/// that cannot run is refused alone.
pub fn compile_change(current: &Environment, change: EnvironmentChange) -> CompiledChange {
    let EnvironmentChange {
        epoch,
        generation,
        mut upserts,
        removals,
    } = change;
    let environment = Environment {
        epoch,
        generation,
        ..current.clone()
    };
    let accepted = Delta {
        environment_id: environment.id.to_string(),
        epoch: environment.epoch.to_string(),
        from_generation: current.generation,
        generation,
        ..Delta::default()
    };
    let mut applied = CompiledChange {
        environment,
        flows: Vec::new(),
        rejections: Vec::new(),
        accepted,
    };
    for id in removals {
        applied.remove(id);
    }
    // A name, path or key may pass from one resource to another within one change: all are released
    // before any is taken.
    for resource in &upserts {
        if let Some(held) = current.resources.get(&resource.id) {
            applied.environment.unindex(&held.compiled);
        }
    }
    // Flows come last, because they need the others, and parts first, because tables need them.
    upserts.sort_by_key(|resource| match Kind::parse(&resource.id) {
        Some((Kind::LookupPart, _)) => 0,
        Some((Kind::Flow, _)) => 2,
        Some(_) | None => 1,
    });
    for mut resource in upserts {
        // A slice would keep the whole message of the stream in memory.
        resource.body = Bytes::copy_from_slice(&resource.body);
        match applied.compile(&resource) {
            Ok(compiled) => applied.accept(resource, compiled),
            Err(message) => applied.refuse(resource, message),
        }
    }
    applied.accepted.set_hash = applied.environment.set_hash.to_vec();
    applied
}

impl CompiledChange {
    fn remove(&mut self, id: String) {
        if let Some(former) = self.environment.resources.remove(&id) {
            self.environment.set_hash = self.environment.set_hash.toggled(&id, former.hash);
            self.environment.unindex(&former.compiled);
            if let CompiledResource::Flow(flow) = former.compiled {
                self.flows.push(FlowChange {
                    before: Some(flow),
                    after: None,
                });
            }
        }
        self.accepted.removals.push(id);
    }

    fn accept(&mut self, resource: Resource, mut compiled: CompiledResource) {
        let former = self
            .environment
            .resources
            .get(&resource.id)
            .and_then(|held| held.compiled.flow());
        if let (CompiledResource::Flow(flow), Some(former)) = (&mut compiled, former)
            && let Some(flow) = Arc::get_mut(flow)
        {
            flow.share_removal_token(former);
        }
        let hash = Hash::of(&resource.body);
        self.environment.index(&compiled);
        let after = compiled.flow().cloned();
        let body = resource.body.clone();
        let former = self.environment.resources.insert(
            resource.id.clone(),
            HeldResource {
                hash,
                body,
                compiled,
            },
        );
        let former_hash = former.as_ref().map(|held| held.hash);
        let set_hash = &mut self.environment.set_hash;
        *set_hash = set_hash.replaced(&resource.id, former_hash, Some(hash));
        if let Some(after) = after {
            let before = former.and_then(|held| held.compiled.flow().cloned());
            self.flows.push(FlowChange {
                before,
                after: Some(after),
            });
        }
        self.accepted.upserts.push(resource);
    }

    /// Notes a refusal. The former version stays. It stays in the indexes only if no other resource
    /// has taken its name.
    fn refuse(&mut self, resource: Resource, mut message: String) {
        let former = self.environment.resources.get(&resource.id);
        // Removals apply all the same: the version that stays may have lost what it refers to.
        let plan = former.and_then(|held| held.compiled.flow()?.plan().ok());
        if let Some(Err(missing)) = plan.map(|plan| self.check_references(&plan)) {
            message = format!("{message}; messages of the version that stays fail: {missing}");
        }
        let running_hash = former.map(|held| held.hash.to_vec()).unwrap_or_default();
        if let Some(compiled) = former.map(|held| held.compiled.clone())
            && !self.environment.is_name_taken(&compiled)
        {
            self.environment.index(&compiled);
        }
        self.rejections.push(Rejection {
            resource_id: resource.id,
            hash: resource.hash,
            message,
            running_hash,
        });
    }
}

#[cfg(test)]
mod tests;
