//! One environment as this node holds it: the encoded resources, and their compiled forms, which
//! messages use.

use std::sync::Arc;

use bytes::Bytes;
use kanat_auth::Sealer;
use kanat_catalog::Instance;
use kanat_engine::Resources;
use kanat_mapping::{AdapterRef, Lookup, Tables};
use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::{Hash, Kind, SetHash, ShardedMap};
use kanat_proto::node::v1::{EnvironmentState, Resource, ResourceHash};
use kanat_script::{Adapter, Scripts};
use prost::Message;

use super::deployed::DeployedFlow;
use super::published::{Api, Key, Keys, Routes, Settings};
use super::table::{Part, Table};

/// Upper bound of the tag and the length of a repeated field, in bytes.
const FIELD_OVERHEAD: usize = 4;

/// One environment at one generation. Neighbouring generations share what did not change.
#[derive(Clone)]
pub struct Environment {
    pub id: EnvironmentId,
    pub epoch: EpochId,
    pub generation: u64,
    pub set_hash: SetHash,
    pub(super) resources: ShardedMap<String, HeldResource>,
    /// By name.
    pub(super) tables: ShardedMap<String, Arc<Table>>,
    /// By id.
    pub(super) instances: ShardedMap<String, Arc<Instance>>,
    /// By name.
    pub(super) adapters: ShardedMap<String, Arc<Adapter>>,
    /// Published APIs by their paths.
    pub(crate) routes: Routes,
    pub(crate) keys: Keys,
    /// Settings by which requests find the environment; absent until they come.
    pub(super) settings: Option<Arc<Settings>>,
}

/// A resource: its encoding, and its compiled form.
#[derive(Clone)]
pub(super) struct HeldResource {
    pub hash: Hash,
    pub body: Bytes,
    pub compiled: CompiledResource,
}

/// Compiled form of a resource.
#[derive(Clone)]
pub(super) enum CompiledResource {
    Flow(Arc<DeployedFlow>),
    Table(Arc<Table>),
    Part(Arc<Part>),
    Instance(Arc<Instance>),
    Adapter(Arc<Adapter>),
    Api(Arc<Api>),
    Key(Arc<Key>),
    Settings(Arc<Settings>),
}

impl CompiledResource {
    pub fn flow(&self) -> Option<&Arc<DeployedFlow>> {
        if let Self::Flow(flow) = self {
            Some(flow)
        } else {
            None
        }
    }
}

impl Environment {
    /// Creates an environment without resources.
    pub fn empty(id: EnvironmentId, epoch: EpochId) -> Self {
        Self {
            id,
            epoch,
            generation: 0,
            set_hash: SetHash::default(),
            resources: ShardedMap::default(),
            tables: ShardedMap::default(),
            instances: ShardedMap::default(),
            adapters: ShardedMap::default(),
            routes: Routes::default(),
            keys: Keys::default(),
            settings: None,
        }
    }

    /// Returns the address of the published APIs, if the environment has one of its own.
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.settings.as_ref()?.base_url.as_deref()
    }

    /// Returns the sealer of content that nobody may read in the message log.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.settings.as_ref()?.sealer.as_deref()
    }

    /// Returns a part of a lookup table by its resource id.
    pub(super) fn part(&self, resource_id: &str) -> Option<&Arc<Part>> {
        if let CompiledResource::Part(part) = &self.resources.get(resource_id)?.compiled {
            Some(part)
        } else {
            None
        }
    }

    /// Adds a resource to the indexes by which it is found.
    pub(super) fn index(&mut self, compiled: &CompiledResource) {
        match compiled {
            CompiledResource::Flow(_) | CompiledResource::Part(_) => {}
            CompiledResource::Table(table) => {
                self.tables.insert(table.name.clone(), Arc::clone(table));
            }
            CompiledResource::Instance(instance) => {
                self.instances
                    .insert(instance.id().to_owned(), Arc::clone(instance));
            }
            CompiledResource::Adapter(adapter) => {
                self.adapters
                    .insert(adapter.name.clone(), Arc::clone(adapter));
            }
            CompiledResource::Api(api) => self.routes.insert(Arc::clone(api)),
            CompiledResource::Key(key) => self.keys.insert(Arc::clone(key)),
            CompiledResource::Settings(settings) => self.settings = Some(Arc::clone(settings)),
        }
    }

    /// Removes a resource from the indexes by which it is found. Another resource that has taken
    /// its name stays.
    pub(super) fn unindex(&mut self, compiled: &CompiledResource) {
        if self.is_name_taken(compiled) {
            return;
        }
        match compiled {
            CompiledResource::Flow(_) | CompiledResource::Part(_) => {}
            CompiledResource::Table(table) => {
                self.tables.remove(&table.name);
            }
            CompiledResource::Instance(instance) => {
                self.instances.remove(instance.id());
            }
            CompiledResource::Adapter(adapter) => {
                self.adapters.remove(&adapter.name);
            }
            CompiledResource::Api(api) => self.routes.remove(api),
            CompiledResource::Key(key) => self.keys.remove(key),
            CompiledResource::Settings(_) => self.settings = None,
        }
    }

    /// Returns whether another resource has the name, or the path, of this one.
    pub(super) fn is_name_taken(&self, compiled: &CompiledResource) -> bool {
        match compiled {
            CompiledResource::Table(table) => {
                let held = self.tables.get(&table.name);
                held.is_some_and(|held| held.id != table.id)
            }
            CompiledResource::Adapter(adapter) => {
                let held = self.adapters.get(&adapter.name);
                held.is_some_and(|held| held.id != adapter.id)
            }
            CompiledResource::Api(api) => self.routes.conflict(api).is_some(),
            CompiledResource::Flow(_)
            | CompiledResource::Part(_)
            | CompiledResource::Instance(_)
            | CompiledResource::Key(_)
            | CompiledResource::Settings(_) => false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Returns the state of the environment without its resources.
    pub(super) fn state(&self) -> EnvironmentState {
        EnvironmentState {
            environment_id: self.id.to_string(),
            epoch: self.epoch.to_string(),
            generation: self.generation,
            set_hash: self.set_hash.to_vec(),
            resources: Vec::new(),
        }
    }

    /// Returns the state of the environment, with the hashes of its resources if they fit into
    /// `room` bytes, which it reduces.
    pub(super) fn full_state(&self, room: &mut usize) -> EnvironmentState {
        let mut state = self.state();
        let mut left = *room;
        for (id, held) in self.resources.iter() {
            let resource = ResourceHash {
                id: id.clone(),
                hash: held.hash.to_vec(),
            };
            let size = resource.encoded_len() + FIELD_OVERHEAD;
            if left < size {
                // Some of them would mean that the node lacks the others.
                state.resources = Vec::new();
                return state;
            }
            left -= size;
            state.resources.push(resource);
        }
        *room = left;
        state
    }

    /// Returns every encoded resource. Those whose name another resource has taken come first, so
    /// that a restart, which compiles them in this order, finds the others by the name.
    pub(super) fn to_resources(&self) -> impl Iterator<Item = Resource> {
        let is_superseded =
            |(_, held): &(&String, &HeldResource)| self.is_name_taken(&held.compiled);
        let superseded = self.resources.iter().filter(is_superseded);
        let others = self
            .resources
            .iter()
            .filter(move |held| !is_superseded(held));
        superseded.chain(others).map(|(id, held)| Resource {
            id: id.clone(),
            hash: held.hash.to_vec(),
            body: held.body.clone(),
        })
    }
}

impl Tables for Environment {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        match self.tables.get(table) {
            None => Lookup::NoTable,
            Some(table) => table.get(key).map_or(Lookup::NoKey, Lookup::Value),
        }
    }
}

impl Resources for Environment {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id).map(Arc::as_ref)
    }

    fn variables(&self) -> &[u8] {
        match &self.settings {
            Some(settings) => &settings.variables,
            None => b"",
        }
    }
}

impl Scripts for Environment {
    fn adapter(&self, named: AdapterRef<'_>) -> Option<&Adapter> {
        match named {
            AdapterRef::Name(name) => self.adapters.get(name).map(Arc::as_ref),
            AdapterRef::Id(id) => {
                let held = self.resources.get(&Kind::Adapter.resource_id(id))?;
                if let CompiledResource::Adapter(adapter) = &held.compiled {
                    Some(adapter)
                } else {
                    None
                }
            }
        }
    }
}

/// Bodies hold secrets and stay out of logs.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Environment");
        debug
            .field("id", &self.id)
            .field("epoch", &self.epoch)
            .field("generation", &self.generation);
        debug
            .field("resources", &self.resources.len())
            .finish_non_exhaustive()
    }
}
