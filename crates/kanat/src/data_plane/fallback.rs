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
use kanat_proto::node::v1::{PublishedSet, PublishedSets};
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
        if self.environments.is_empty() {
            return Ok(sets);
        }
        if let Some(missing) = self
            .environments
            .iter()
            .find(|name| !sets.sets.iter().any(|set| is_of(set, name)))
        {
            return Err(format!(
                "{} has no plans of environment {missing:?}",
                file.display()
            ));
        }
        sets.sets
            .retain(|set| self.environments.iter().any(|name| is_of(set, name)));
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

/// Returns whether a set is that of the environment with this id or name.
fn is_of(set: &PublishedSet, id_or_name: &str) -> bool {
    set.environment
        .as_ref()
        .is_some_and(|environment| environment.id == id_or_name || environment.name == id_or_name)
}

#[cfg(test)]
mod tests {
    use kanat_proto::node::v1::Environment;

    use super::*;

    /// Reads a plan file with the environments `production` and `staging`, at a node that names
    /// these. Returns the names of the environments of the sets.
    async fn read(named: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plans");
        let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
        let sets = [("env_1", "production"), ("env_2", "staging")].map(|(id, name)| PublishedSet {
            environment: Some(Environment {
                id: id.to_owned(),
                name: name.to_owned(),
                ..Environment::default()
            }),
            ..PublishedSet::default()
        });
        let sets = PublishedSets {
            sets: sets.to_vec(),
        };
        std::fs::write(&file, export::seal(&sets, &sealer)).unwrap();
        let elsewhere = Elsewhere {
            file: Some(file),
            database: None,
            environments: named.iter().map(|&name| name.to_owned()).collect(),
            sealer,
        };
        let sets = elsewhere.read().await?.sets;
        Ok(sets
            .into_iter()
            .map(|set| set.environment.unwrap().name)
            .collect())
    }

    #[tokio::test]
    async fn a_plan_file_serves_the_named_environments_or_all() {
        assert_eq!(read(&[]).await.unwrap(), ["production", "staging"]);
        assert_eq!(read(&["staging"]).await.unwrap(), ["staging"]);
        assert_eq!(read(&["env_1"]).await.unwrap(), ["production"]);
    }

    #[tokio::test]
    async fn refuses_a_plan_file_that_lacks_a_named_environment() {
        let error = read(&["staging", "canary"]).await.unwrap_err();
        assert!(
            error.ends_with("plans has no plans of environment \"canary\""),
            "{error}"
        );
    }
}
