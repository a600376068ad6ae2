//! Names of an environment that definitions may refer to.

use std::collections::{BTreeMap, HashMap};

use kanat_flow::{InstanceRef, Names};
use kanat_model::Error;
use kanat_model::id::{AdapterId, EnvironmentId, InstanceId, LookupTableId};
use kanat_store::names::{self, NamedResource};
use kanat_store::{Db, environment};

/// The names of one environment, as they stood when they were loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EnvironmentNames {
    instances: HashMap<String, InstanceRef>,
    tables: HashMap<String, LookupTableId>,
    adapters: HashMap<String, AdapterId>,
    /// Variables with their values.
    variables: BTreeMap<String, String>,
}

impl EnvironmentNames {
    pub async fn load(db: &mut Db, environment: &EnvironmentId) -> Result<Self, Error> {
        let variables = environment::variables(db, environment).await?;
        let mut names = Self {
            variables: variables.unwrap_or_default(),
            ..Self::default()
        };
        for (name, named) in names::of(db, environment).await? {
            match named {
                NamedResource::Instance { id, catalog_id } => {
                    names.instances.insert(
                        name,
                        InstanceRef {
                            id: id.into_string(),
                            entry: catalog_id,
                        },
                    );
                }
                NamedResource::Table(id) => drop(names.tables.insert(name, id)),
                NamedResource::Adapter(id) => drop(names.adapters.insert(name, id)),
            }
        }
        Ok(names)
    }

    /// The id of the table with this name.
    pub fn table_id(&self, name: &str) -> Option<&LookupTableId> {
        self.tables.get(name)
    }

    /// The variables of the environment, with their values.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The id of the adapter with this name.
    pub fn adapter_id(&self, name: &str) -> Option<&AdapterId> {
        self.adapters.get(name)
    }
}

impl Names for EnvironmentNames {
    fn instance(&self, name: &str) -> Option<InstanceRef> {
        self.instances.get(name).cloned()
    }

    fn instances_of(&self, entry: &str) -> Vec<InstanceRef> {
        self.instances
            .values()
            .filter(|instance| instance.entry == entry)
            .cloned()
            .collect()
    }

    fn table(&self, name: &str) -> bool {
        self.tables.contains_key(name)
    }

    fn adapter(&self, name: &str) -> Option<String> {
        self.adapters.get(name).map(AdapterId::to_string)
    }

    fn instance_names(&self) -> Vec<String> {
        self.instances.keys().cloned().collect()
    }

    fn table_names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    fn adapter_names(&self) -> Vec<String> {
        self.adapters.keys().cloned().collect()
    }

    fn variable(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }
}

/// The names of an environment where every other name exists as well: a draft can be tested before
/// its connectors are made.
pub struct Lenient<'n>(pub &'n EnvironmentNames);

impl Lenient<'_> {
    /// The id of an instance that does not exist.
    pub fn missing_instance() -> InstanceId {
        InstanceId::new("")
    }
}

impl Names for Lenient<'_> {
    fn instance(&self, name: &str) -> Option<InstanceRef> {
        let missing = || InstanceRef {
            id: Self::missing_instance().into_string(),
            entry: String::new(),
        };
        Some(self.0.instance(name).unwrap_or_else(missing))
    }

    fn instances_of(&self, entry: &str) -> Vec<InstanceRef> {
        match self.0.instances_of(entry).into_iter().next() {
            Some(first) => vec![first],
            None => vec![InstanceRef {
                id: Self::missing_instance().into_string(),
                entry: entry.to_owned(),
            }],
        }
    }

    fn table(&self, _name: &str) -> bool {
        true
    }

    fn adapter(&self, name: &str) -> Option<String> {
        Some(self.0.adapter(name).unwrap_or_else(|| name.to_owned()))
    }

    fn instance_names(&self) -> Vec<String> {
        self.0.instance_names()
    }

    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    fn adapter_names(&self) -> Vec<String> {
        self.0.adapter_names()
    }

    fn variable(&self, _name: &str) -> bool {
        true
    }

    fn variable_names(&self) -> Vec<String> {
        self.0.variable_names()
    }
}
