//! The tables, instances and adapters that one run in the control plane needs: those that its plan
//! uses, read from the store.

use std::collections::HashMap;

use kanat_catalog::Instance;
use kanat_engine::{Mask, Resources};
use kanat_mapping::{AdapterRef, Lookup, Tables};
use kanat_model::Result;
use kanat_model::id::{AdapterId, EnvironmentId};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{ConnectorInstance, FlowPlan};
use kanat_script::{Adapter, Scripts};
use kanat_store::Db;
use kanat_store::lookup_table::entry;

use super::names::EnvironmentNames;
use super::uses;
use crate::app::{App, adapter, change};

/// Tables and adapters by name, instances by id, and the variables of the environment.
#[derive(Debug, Default)]
pub struct Samples {
    tables: HashMap<String, HashMap<String, String>>,
    instances: HashMap<String, Instance>,
    adapters: HashMap<String, Adapter>,
    /// A JSON object of texts.
    variables: Vec<u8>,
}

impl Samples {
    /// Reads what `plan` uses; what does not exist is missing, and the run says so where it
    /// matters.
    pub async fn load(
        app: &App,
        db: &mut Db,
        environment: &EnvironmentId,
        plan: &FlowPlan,
        names: &EnvironmentNames,
    ) -> Result<Self> {
        let mut samples = Self::named(db, environment, uses::names(plan), names).await?;
        let own = AdapterId::from(plan.adapter.as_str());
        samples.add_adapter(db, environment, &own).await?;
        for id in uses::instances(plan) {
            let found: Option<ConnectorInstance> =
                change::published(db, &app.sealer, environment, Kind::ConnectorInstance, id)
                    .await?;
            let built = found.and_then(|plan| kanat_engine::instance(plan).ok());
            samples
                .instances
                .extend(built.map(|instance| (id.to_owned(), instance)));
        }
        Ok(samples)
    }

    /// Reads tables and adapters that expressions name.
    pub async fn named(
        db: &mut Db,
        environment: &EnvironmentId,
        named: uses::Names,
        names: &EnvironmentNames,
    ) -> Result<Self> {
        let mut samples = Self {
            variables: serde_json::json!(names.variables())
                .to_string()
                .into_bytes(),
            ..Self::default()
        };
        for name in named.tables {
            if let Some(id) = names.table_id(&name) {
                let entries = entry::all(db, id)
                    .await?
                    .into_iter()
                    .map(|entry| (entry.key, entry.value));
                samples.tables.insert(name, entries.collect());
            }
        }
        let called = named
            .adapters
            .iter()
            .filter_map(|name| names.adapter_id(name).cloned());
        for id in called {
            samples.add_adapter(db, environment, &id).await?;
        }
        Ok(samples)
    }

    /// Adds an adapter, if there is one of that id.
    async fn add_adapter(
        &mut self,
        db: &mut Db,
        environment: &EnvironmentId,
        id: &AdapterId,
    ) -> Result<()> {
        if let Some(found) = kanat_store::adapter::get(db, environment, id).await? {
            self.adapters
                .insert(found.name.clone(), adapter::callable(found));
        }
        Ok(())
    }

    /// Returns what hides the secrets of every instance.
    pub fn secrets(&self) -> Mask {
        Mask::new(
            self.instances
                .values()
                .flat_map(|instance| instance.secrets()),
        )
    }
}

impl Tables for Samples {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        self.tables.lookup(table, key)
    }
}

impl Scripts for Samples {
    fn adapter(&self, named: AdapterRef<'_>) -> Option<&Adapter> {
        self.adapters.adapter(named)
    }
}

impl Resources for Samples {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id)
    }

    fn variables(&self) -> &[u8] {
        &self.variables
    }
}
