//! Sources of plans for a node that has none and reaches no control plane: a file that a control
//! plane wrote, or the last published plans in the shared store. Both are sealed under the control
//! planes' master key: the node must have it.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use kanat_auth::Sealer;
use kanat_control_plane::push::export;
use kanat_control_plane::push::source::Source;
use kanat_data_plane::plans::Fallback;
use kanat_model::Secret;
use kanat_proto::node::v1::PublishedSets;
use kanat_store::Store;

use crate::settings::data_plane::Settings;
use crate::settings::value::Database;

#[derive(Clone)]
struct Elsewhere {
    file: Option<PathBuf>,
    database: Option<Secret<String>>,
    environments: Vec<String>,
    sealer: Arc<Sealer>,
}

/// The file when there is one, else the store.
pub fn fallback(settings: &Settings, sealer: &Arc<Sealer>) -> Fallback {
    let database = match &settings.process.database {
        Database::Files => None,
        Database::Postgres(url) => Some(url.clone()),
    };
    let elsewhere = Elsewhere {
        file: settings.plan_file.clone(),
        database,
        environments: settings.environments.clone(),
        sealer: Arc::clone(sealer),
    };
    Fallback::new(move || elsewhere.clone().read().boxed())
}

impl Elsewhere {
    async fn read(self) -> Result<PublishedSets, String> {
        match (&self.file, &self.database) {
            (Some(file), _) => self.of_file(file).await,
            (None, Some(url)) => self.of_store(url.expose()).await,
            (None, None) => Err("there is no --plan-file".to_owned()),
        }
    }

    async fn of_file(&self, file: &PathBuf) -> Result<PublishedSets, String> {
        let sealed = tokio::fs::read(file)
            .await
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let opened = export::open(&sealed, &self.sealer);
        let mut sets = opened.ok_or_else(|| {
            format!(
                "{} is damaged, or sealed under a master key that this node does not have",
                file.display()
            )
        })?;
        let is_served = |name: &String, id: &str, of: &str| name == id || name == of;
        sets.sets.retain(|set| {
            let environment = set.environment.clone().unwrap_or_default();
            self.environments.is_empty()
                || self
                    .environments
                    .iter()
                    .any(|name| is_served(name, &environment.id, &environment.name))
        });
        Ok(sets)
    }

    async fn of_store(&self, url: &str) -> Result<PublishedSets, String> {
        let store = Store::attach(url)
            .await
            .map_err(|error| format!("the store cannot be reached: {error}"))?;
        let source = Source::new(store.clone(), Arc::clone(&self.sealer));
        let sets = export::published_sets(&source, &self.environments).await;
        store.close().await;
        sets.map_err(|error| format!("what is published cannot be read: {error}"))
    }
}
