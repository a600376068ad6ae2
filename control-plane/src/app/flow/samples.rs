//! The tables and instances that one run in the control plane needs: those that its plan uses, read from the store.

use std::collections::HashMap;

use kanat_catalog::{Instance, MASK};
use kanat_engine::Resources;
use kanat_mapping::{Lookup, Tables};
use kanat_model::Error;
use kanat_model::id::EnvironmentId;
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{ConnectorInstance, FlowPlan};
use kanat_store::Db;
use kanat_store::lookup_table::entry;

use super::names::EnvironmentNames;
use super::uses;
use crate::app::{App, change};

/// Tables by name and instances by id.
#[derive(Debug, Default)]
pub struct Samples {
    tables: HashMap<String, HashMap<String, String>>,
    instances: HashMap<String, Instance>,
}

impl Samples {
    /// Reads what `plan` uses; what does not exist is missing, and the run says so where it matters.
    pub async fn load(
        app: &App,
        db: &mut Db,
        environment: &EnvironmentId,
        plan: &FlowPlan,
        names: &EnvironmentNames,
    ) -> Result<Self, Error> {
        let mut samples = Self::default();
        for name in uses::tables(plan) {
            if let Some(id) = names.table_id(&name) {
                let entries = entry::all(db, id).await?.into_iter().map(|entry| (entry.key, entry.value));
                samples.tables.insert(name, entries.collect());
            }
        }
        for id in uses::instances(plan) {
            let found: Option<ConnectorInstance> =
                change::published(db, &app.sealer, environment, Kind::ConnectorInstance, id).await?;
            let built = found.and_then(|i| Instance::new(i.id, i.name, &i.catalog_id, &i.config).ok());
            samples.instances.extend(built.map(|instance| (id.to_owned(), instance)));
        }
        Ok(samples)
    }

    /// `text` without the secrets of any instance.
    pub fn mask(&self, text: String) -> String {
        let secrets = self.instances.values().flat_map(|instance| instance.secrets());
        let secrets = secrets.filter(|secret| !secret.is_empty());
        let mut spellings: Vec<String> = secrets.flat_map(|secret| [secret.clone(), as_json(secret)]).collect();
        // The longest first: one secret may be part of another.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.iter().fold(text, |text, spelling| text.replace(spelling.as_str(), MASK))
    }
}

/// A secret as it stands between the quotes of a JSON string.
fn as_json(secret: &str) -> String {
    let mut quoted = Vec::new();
    kanat_mapping::json::write_string(secret, &mut quoted);
    let quoted = String::from_utf8_lossy(&quoted).into_owned();
    quoted[1..quoted.len() - 1].to_owned()
}

impl Tables for Samples {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        self.tables.lookup(table, key)
    }
}

impl Resources for Samples {
    fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.get(id)
    }
}
