//! Versions that run although they would be refused today: they were deployed by an earlier build.

use std::collections::HashMap;

use kanat_flow::fields::exposed_secrets;
use kanat_model::Error;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_store::flow_version;

use super::definition;
use super::names::EnvironmentNames;
use crate::app::App;

/// Versions that are read at a time.
const PAGE: u32 = 100;

/// Logs a warning for each version that runs and shows a secret of a connector.
pub async fn log_exposed_secrets(app: &App) -> Result<(), Error> {
    let mut names: HashMap<EnvironmentId, EnvironmentNames> = HashMap::new();
    let mut after = FlowId::from("");
    loop {
        let mut tx = app.store.read().await?;
        let page = flow_version::running(&mut tx, "instance", &after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.version.flow_id.clone();
        for running in page {
            if !names.contains_key(&running.environment_id) {
                let loaded = EnvironmentNames::load(&mut tx, &running.environment_id).await?;
                names.insert(running.environment_id.clone(), loaded);
            }
            let Some(names) = names.get(&running.environment_id) else {
                continue;
            };
            let Ok(definition) = definition::stored(&app.sealer, &running.version) else {
                continue;
            };
            for exposed in exposed_secrets(&definition, names) {
                tracing::warn!(
                    flow.id = %running.version.flow_id,
                    flow.version = running.version.version,
                    path = %exposed.path,
                    "the flow {:?} shows a secret, and runs until its next deploy, which will \
                     refuse it: {exposed}",
                    running.flow_name,
                );
            }
        }
    }
}
