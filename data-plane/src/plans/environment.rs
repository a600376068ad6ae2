//! What this node holds of one environment: its resources as they came, and the parts that messages
//! use.

use std::sync::Arc;

use bytes::Bytes;
use kanat_auth::Sealer;
use kanat_catalog::Instance;
use kanat_engine::Resources;
use kanat_mapping::{AdapterRef, Lookup, Tables};
use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::{Hash, Kind, SetHash, Sharded};
use kanat_proto::node::v1::{EnvironmentState, Resource, ResourceHash};
use kanat_script::{Adapter, Scripts};
use prost::Message;

use super::deployed::Deployed;
use super::published::{Api, Host, Key, Keys, Routes};
use super::table::{Part, Table};

/// Bytes that a message spends on each of its repeated fields beside what they say: a tag and a
/// length.
const OF_EACH: usize = 4;

/// One environment at one generation. Neighbouring generations share what did not change.
#[derive(Clone)]
pub struct Environment {
    pub id: EnvironmentId,
    pub epoch: EpochId,
    pub generation: u64,
    pub set_hash: SetHash,
    pub(super) resources: Sharded<String, Held>,
    /// By name.
    pub(super) tables: Sharded<String, Arc<Table>>,
    /// By id.
    pub(super) instances: Sharded<String, Arc<Instance>>,
    /// By name.
    pub(super) adapters: Sharded<String, Arc<Adapter>>,
    /// Published APIs by their paths.
    pub(crate) routes: Routes,
    pub(crate) keys: Keys,
    /// What says which requests are for this environment; absent until it is told.
    pub(super) host: Option<Arc<Host>>,
}

/// A resource as it came, and what it became.
#[derive(Clone)]
pub(super) struct Held {
    pub hash: Hash,
    pub body: Bytes,
    pub compiled: Compiled,
}

/// A resource, ready to use.
#[derive(Clone)]
pub(super) enum Compiled {
    Flow(Arc<Deployed>),
    Table(Arc<Table>),
    Part(Arc<Part>),
    Instance(Arc<Instance>),
    Adapter(Arc<Adapter>),
    Api(Arc<Api>),
    Key(Arc<Key>),
    Host(Arc<Host>),
}

impl Compiled {
    pub fn flow(&self) -> Option<&Arc<Deployed>> {
        match self {
            Self::Flow(flow) => Some(flow),
            Self::Table(_)
            | Self::Part(_)
            | Self::Instance(_)
            | Self::Adapter(_)
            | Self::Api(_)
            | Self::Key(_)
            | Self::Host(_) => None,
        }
    }
}

impl Environment {
    /// An environment of which nothing is held yet.
    pub fn empty(id: EnvironmentId, epoch: EpochId) -> Self {
        Self {
            id,
            epoch,
            generation: 0,
            set_hash: SetHash::default(),
            resources: Sharded::default(),
            tables: Sharded::default(),
            instances: Sharded::default(),
            adapters: Sharded::default(),
            routes: Routes::default(),
            keys: Keys::default(),
            host: None,
        }
    }

    /// Where its published APIs are reached, when it has an address of its own.
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.host.as_ref()?.base_url.as_deref()
    }

    /// What seals and opens what the message log keeps for this environment, and nobody may read
    /// there.
    pub(crate) fn sealer(&self) -> Option<&Sealer> {
        self.host.as_ref()?.sealer.as_deref()
    }

    /// A part of a lookup table, by its resource id.
    pub(super) fn part(&self, resource_id: &str) -> Option<&Arc<Part>> {
        match &self.resources.get(resource_id)?.compiled {
            Compiled::Part(part) => Some(part),
            Compiled::Flow(_)
            | Compiled::Table(_)
            | Compiled::Instance(_)
            | Compiled::Adapter(_)
            | Compiled::Api(_)
            | Compiled::Key(_)
            | Compiled::Host(_) => None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Which set this is, without its resources.
    pub(super) fn state(&self) -> EnvironmentState {
        EnvironmentState {
            environment_id: self.id.to_string(),
            epoch: self.epoch.to_string(),
            generation: self.generation,
            set_hash: self.set_hash.to_vec(),
            resources: Vec::new(),
        }
    }

    /// Which set this is, with the hash of every resource where these take up no more of `room`, in
    /// bytes, than is left of it.
    pub(super) fn full_state(&self, room: &mut usize) -> EnvironmentState {
        let mut state = self.state();
        let mut left = *room;
        for (id, held) in self.resources.iter() {
            let resource = ResourceHash {
                id: id.clone(),
                hash: held.hash.to_vec(),
            };
            let size = resource.encoded_len() + OF_EACH;
            if left < size {
                // Part of them would say that the node lacks the others.
                state.resources = Vec::new();
                return state;
            }
            left -= size;
            state.resources.push(resource);
        }
        *room = left;
        state
    }

    /// Every resource as it came, in no order.
    pub(super) fn to_resources(&self) -> impl Iterator<Item = Resource> {
        self.resources.iter().map(|(id, held)| Resource {
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
}

impl Scripts for Environment {
    fn adapter(&self, named: AdapterRef<'_>) -> Option<&Adapter> {
        match named {
            AdapterRef::Name(name) => self.adapters.get(name).map(Arc::as_ref),
            AdapterRef::Id(id) => {
                match &self.resources.get(&Kind::Adapter.resource_id(id))?.compiled {
                    Compiled::Adapter(adapter) => Some(adapter),
                    Compiled::Flow(_)
                    | Compiled::Table(_)
                    | Compiled::Part(_)
                    | Compiled::Instance(_)
                    | Compiled::Api(_)
                    | Compiled::Key(_)
                    | Compiled::Host(_) => None,
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
