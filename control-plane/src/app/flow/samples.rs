//! The tables, instances and adapters that one run in the control plane needs: those that its plan
//! uses, read from the store.

use std::collections::HashMap;

use kanat_catalog::Instance;
use kanat_engine::{Mask, Resources};
use kanat_mapping::{AdapterRef, Lookup, Tables};
use kanat_model::Error;
use kanat_model::id::{AdapterId, EnvironmentId};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{ConnectorInstance, FlowPlan};
use kanat_script::{Adapter, Scripts};
use kanat_store::Db;
use kanat_store::lookup_table::entry;

use super::names::EnvironmentNames;
use super::uses;
use crate::app::{App, adapter, change};

/// Tables and adapters by name and instances by id.
#[derive(Debug, Default)]
pub struct Samples {
    tables: HashMap<String, HashMap<String, String>>,
    instances: HashMap<String, Instance>,
    adapters: HashMap<String, Adapter>,
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
    ) -> Result<Self, Error> {
        let mut samples = Self::default();
        let named = uses::names(plan);
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
        let own = AdapterId::from(plan.adapter.as_str());
        for id in called.chain([own]) {
            if let Some(found) = kanat_store::adapter::get(db, environment, &id).await? {
                samples
                    .adapters
                    .insert(found.name.clone(), adapter::callable(found));
            }
        }
        for id in uses::instances(plan) {
            let found: Option<ConnectorInstance> =
                change::published(db, &app.sealer, environment, Kind::ConnectorInstance, id)
                    .await?;
            let built =
                found.and_then(|i| Instance::new(i.id, i.name, &i.catalog_id, &i.config).ok());
            samples
                .instances
                .extend(built.map(|instance| (id.to_owned(), instance)));
        }
        Ok(samples)
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
}
