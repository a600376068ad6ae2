//! Works a change into an environment: compiles beside, refuses the resources that cannot run, and
//! gives the environment that takes the former one's place. Pure; nothing is live before the caller
//! makes it so.

mod compile;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use kanat_model::id::EpochId;
use kanat_plan_stream::snapshot::proven_hash;
use kanat_plan_stream::{Hash, Kind, SetHash};
use kanat_proto::node::v1::{Delta, Rejection, Resource, SnapshotBegin};

use super::environment::{Compiled, Environment, Held};
use super::snapshot::FlowChange;

/// The change from what an environment is to what it shall be.
#[derive(Debug)]
pub struct Change {
    pub epoch: EpochId,
    pub generation: u64,
    pub upserts: Vec<Resource>,
    pub removals: Vec<String>,
}

/// What a change came to.
#[derive(Debug)]
pub struct Applied {
    pub environment: Environment,
    pub flows: Vec<FlowChange>,
    /// Resources that were refused, and keep their former version.
    pub rejections: Vec<Rejection>,
    /// What really changed: the accepted upserts and the removals.
    pub accepted: Delta,
}

/// Why a change cannot be worked in at all: it must come as a snapshot.
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

/// Reads a delta, and proves that it leads from `current` to the set that it announces.
pub fn of_delta(current: &Environment, delta: Delta) -> Result<Change, Mismatch> {
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
        set_hash = replaced(
            set_hash,
            &resource.id,
            hash_of(&resource.id),
            Some(proven_hash(resource)?),
        );
    }
    for id in &removals {
        set_hash = replaced(set_hash, id, hash_of(id), None);
    }
    if set_hash.to_vec() != announced {
        return Err(Mismatch::SetHash);
    }
    Ok(Change {
        epoch: EpochId::new(epoch),
        generation,
        upserts,
        removals,
    })
}

/// The change from `current` to a whole set, which is proven already: what is the same stays as it
/// is.
pub fn of_snapshot(
    current: &Environment,
    begin: &SnapshotBegin,
    resources: Vec<Resource>,
) -> Change {
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
    Change {
        epoch: EpochId::from(begin.epoch.as_str()),
        generation: begin.generation,
        upserts,
        removals,
    }
}

/// Works `change` in. Removals always apply; a resource that cannot run is refused alone.
pub fn apply(current: &Environment, change: Change) -> Applied {
    let Change {
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
    let mut applied = Applied {
        environment,
        flows: Vec::new(),
        rejections: Vec::new(),
        accepted,
    };
    for id in removals {
        applied.remove(id);
    }
    // Names, paths and keys may change hands within one change: all give theirs back before any
    // takes one.
    for resource in &upserts {
        applied.take_name_back(&resource.id);
    }
    // Flows come last, because they need the others, and parts first, because tables need them.
    upserts.sort_by_key(|resource| match Kind::parse(&resource.id) {
        Some((Kind::LookupPart, _)) => 0,
        Some((Kind::Flow, _)) => 2,
        Some(_) | None => 1,
    });
    for mut resource in upserts {
        // A slice would keep the whole message that it came in.
        resource.body = Bytes::copy_from_slice(&resource.body);
        match applied.compile(&resource) {
            Ok(compiled) => applied.accept(resource, compiled),
            Err(message) => applied.refuse(resource, message),
        }
    }
    applied.accepted.set_hash = applied.environment.set_hash.to_vec();
    applied
}

impl Applied {
    fn remove(&mut self, id: String) {
        if let Some(former) = self.environment.resources.remove(&id) {
            self.environment.set_hash = self.environment.set_hash.toggled(&id, former.hash);
            self.take_back(&former.compiled);
            if let Compiled::Flow(flow) = former.compiled {
                self.flows.push(FlowChange {
                    before: Some(flow),
                    after: None,
                });
            }
        }
        self.accepted.removals.push(id);
    }

    fn take_name_back(&mut self, id: &str) {
        match self
            .environment
            .resources
            .get(id)
            .map(|held| held.compiled.clone())
        {
            Some(
                compiled @ (Compiled::Table(_)
                | Compiled::Adapter(_)
                | Compiled::Api(_)
                | Compiled::Key(_)),
            ) => {
                self.take_back(&compiled);
            }
            Some(
                Compiled::Part(_) | Compiled::Flow(_) | Compiled::Instance(_) | Compiled::Host(_),
            )
            | None => {}
        }
    }

    fn take_back(&mut self, compiled: &Compiled) {
        match compiled {
            Compiled::Flow(_) | Compiled::Part(_) => {}
            Compiled::Table(table) => {
                self.environment.tables.remove(&table.name);
            }
            Compiled::Instance(instance) => {
                self.environment.instances.remove(instance.id());
            }
            Compiled::Adapter(adapter) => {
                self.environment.adapters.remove(&adapter.name);
            }
            Compiled::Api(api) => self.environment.routes.remove(api),
            Compiled::Key(key) => self.environment.keys.remove(key),
            Compiled::Host(_) => self.environment.host = None,
        }
    }

    fn accept(&mut self, resource: Resource, mut compiled: Compiled) {
        let former = self
            .environment
            .resources
            .get(&resource.id)
            .and_then(|held| held.compiled.flow());
        if let (Compiled::Flow(flow), Some(former)) = (&mut compiled, former)
            && let Some(flow) = Arc::get_mut(flow)
        {
            flow.succeed(former);
        }
        let hash = Hash::of(&resource.body);
        self.put(&compiled);
        let after = compiled.flow().cloned();
        let body = resource.body.clone();
        let former = self.environment.resources.insert(
            resource.id.clone(),
            Held {
                hash,
                body,
                compiled,
            },
        );
        let former_hash = former.as_ref().map(|held| held.hash);
        self.environment.set_hash = replaced(
            self.environment.set_hash,
            &resource.id,
            former_hash,
            Some(hash),
        );
        if let Some(after) = after {
            let before = former.and_then(|held| held.compiled.flow().cloned());
            self.flows.push(FlowChange {
                before,
                after: Some(after),
            });
        }
        self.accepted.upserts.push(resource);
    }

    /// Makes a resource found by what it is asked for.
    fn put(&mut self, compiled: &Compiled) {
        match compiled {
            Compiled::Flow(_) | Compiled::Part(_) => {}
            Compiled::Table(table) => {
                self.environment
                    .tables
                    .insert(table.name.clone(), Arc::clone(table));
            }
            Compiled::Instance(instance) => {
                self.environment
                    .instances
                    .insert(instance.id().to_owned(), Arc::clone(instance));
            }
            Compiled::Adapter(adapter) => {
                self.environment
                    .adapters
                    .insert(adapter.name.clone(), Arc::clone(adapter));
            }
            Compiled::Api(api) => self.environment.routes.insert(Arc::clone(api)),
            Compiled::Key(key) => self.environment.keys.insert(Arc::clone(key)),
            Compiled::Host(host) => self.environment.host = Some(Arc::clone(host)),
        }
    }

    /// The former version stays, under the name that it had unless another took it.
    fn refuse(&mut self, resource: Resource, mut message: String) {
        let former = self.environment.resources.get(&resource.id);
        // Removals apply all the same: the version that stays may have lost what it takes.
        let plan = former.and_then(|held| held.compiled.flow()?.plan().ok());
        if let Some(Err(missing)) = plan.map(|plan| self.check_references(&plan)) {
            message = format!("{message}; messages of the version that stays fail: {missing}");
        }
        let running_hash = former.map(|held| held.hash.to_vec()).unwrap_or_default();
        match former.map(|held| held.compiled.clone()) {
            Some(Compiled::Table(table)) if self.environment.tables.get(&table.name).is_none() => {
                self.environment.tables.insert(table.name.clone(), table);
            }
            Some(Compiled::Adapter(adapter))
                if self.environment.adapters.get(&adapter.name).is_none() =>
            {
                self.environment
                    .adapters
                    .insert(adapter.name.clone(), adapter);
            }
            Some(Compiled::Api(api)) if self.environment.routes.conflict(&api).is_none() => {
                self.environment.routes.insert(api);
            }
            Some(Compiled::Key(key)) => self.environment.keys.insert(key),
            Some(_) | None => {}
        }
        self.rejections.push(Rejection {
            resource_id: resource.id,
            hash: resource.hash,
            message,
            running_hash,
        });
    }
}

fn replaced(set_hash: SetHash, id: &str, before: Option<Hash>, after: Option<Hash>) -> SetHash {
    before
        .into_iter()
        .chain(after)
        .fold(set_hash, |set_hash, hash| set_hash.toggled(id, hash))
}

#[cfg(test)]
mod tests;
