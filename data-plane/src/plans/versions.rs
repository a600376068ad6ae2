//! Former versions of flows that still have messages: kept in the message log, and compiled when a
//! message needs them.

use std::collections::HashMap;
use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_engine::CompileError;
use kanat_message_log::{PlanStore, SavedPlan};
use kanat_model::id::FlowId;
use kanat_plan_stream::saved;
use kanat_proto::plan::v1::SetVersion;
use parking_lot::Mutex;
use prost::Message;

use super::deployed::{CompiledFlow, DeployedFlow};
use super::environment::Environment;
use super::snapshot::{FlowChange, Snapshot};

/// Largest number of compiled versions in the cache.
const MAX_COMPILED_VERSIONS: usize = 1_000;

/// Number of plans that one call saves.
const BATCH_SIZE: usize = 500;

/// Reason why a version is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("versions of flows cannot be written to or read from the message log: {0}")]
    Log(#[from] kanat_message_log::Error),
    #[error("flow {0} was deleted")]
    Deleted(FlowId),
    #[error(
        "this node runs generation {running_generation}, and the flow was changed in a later one"
    )]
    NodeOutdated { running_generation: u64 },
    #[error("version {version} of flow {flow_id} cannot be read: {source}")]
    Encoding {
        flow_id: FlowId,
        version: u32,
        source: prost::DecodeError,
    },
    #[error("version {version} of flow {flow_id} cannot be read: {source}")]
    Saved {
        flow_id: FlowId,
        version: u32,
        source: saved::Error,
    },
    #[error("version {version} of flow {flow_id} cannot run on this build: {source}")]
    Compile {
        flow_id: FlowId,
        version: u32,
        source: CompileError,
    },
}

/// Former versions of flows, by flow and number.
pub struct FlowVersions {
    log: Arc<dyn PlanStore>,
    compiled_cache: Mutex<CompiledVersions>,
}

#[derive(Default)]
struct CompiledVersions {
    flows: HashMap<(FlowId, u32), (Arc<CompiledFlow>, u64)>,
    uses: u64,
}

impl FlowVersions {
    pub fn new(log: Arc<dyn PlanStore>) -> Self {
        Self {
            log,
            compiled_cache: Mutex::default(),
        }
    }

    /// Returns a version of a flow of `environment`; `None` when the log has none.
    ///
    /// # Errors
    /// The log cannot be read; what it holds cannot run on this build; the version was made from
    /// later plans than those of `environment`, which may lack what it names.
    pub async fn get(
        &self,
        flow_id: &FlowId,
        version: u32,
        environment: &Environment,
    ) -> Result<Option<Arc<CompiledFlow>>, Error> {
        if let Some(flow) = self.compiled_cache.lock().get(flow_id, version) {
            return Ok(Some(flow));
        }
        let Some(body) = self.log.plan(flow_id, version).await? else {
            return Ok(None);
        };
        let plan = saved::decode(flow_id.as_str(), version, body, environment.sealer()).map_err(
            |source| Error::Saved {
                flow_id: flow_id.clone(),
                version,
                source,
            },
        )?;
        if let Some(made_from) = &plan.made_from {
            refuse_later(environment, made_from)?;
        }
        let flow = CompiledFlow::compile(plan).map_err(|source| Error::Compile {
            flow_id: flow_id.clone(),
            version,
            source,
        })?;
        let flow = Arc::new(flow);
        self.compiled_cache
            .lock()
            .insert(flow_id, version, Arc::clone(&flow));
        Ok(Some(flow))
    }

    /// Drops the compiled form of the versions that `changes` bring. After a restore of the store,
    /// their numbers may have belonged to other versions before.
    pub(super) fn forget(&self, changes: &[FlowChange]) {
        let mut cache = self.compiled_cache.lock();
        for after in changes.iter().filter_map(|change| change.after.as_ref()) {
            cache.flows.remove(&(after.id.clone(), after.version));
        }
    }

    /// Writes down the versions that `snapshot` runs, where the log lacks them.
    ///
    /// # Errors
    /// The log cannot be written.
    pub async fn save_running(&self, snapshot: &Snapshot) -> Result<(), Error> {
        for environment in snapshot.environments() {
            let resources = environment.resources.iter();
            let flows = resources.filter_map(|(_, held)| held.compiled.flow());
            let flows: Vec<_> = flows.map(|flow| flow.as_ref()).collect();
            save_missing(&*self.log, environment, &flows).await?;
        }
        Ok(())
    }

    /// Refuses a flow that `environment` lacks because it was deleted. The log has a tombstone of a
    /// deleted flow, which may exist although the deletion failed. It counts only if the node
    /// already runs the generation that deletes the flow, or a later one.
    ///
    /// # Errors
    /// The flow is deleted, or has a tombstone of a later change; the log cannot be read.
    pub async fn refuse_deleted(
        &self,
        flow_id: &FlowId,
        environment: &Environment,
    ) -> Result<(), Error> {
        let version = SavedPlan::TOMBSTONE_VERSION;
        let Some(mark) = self.log.plan(flow_id, version).await? else {
            return Ok(());
        };
        let deletion = SetVersion::decode(mark).map_err(|source| Error::Encoding {
            flow_id: flow_id.clone(),
            version,
            source,
        })?;
        refuse_later(environment, &deletion)?;
        Err(Error::Deleted(flow_id.clone()))
    }
}

impl CompiledVersions {
    /// Returns a version, which is the most recently used one from now on.
    fn get(&mut self, flow_id: &FlowId, version: u32) -> Option<Arc<CompiledFlow>> {
        self.uses += 1;
        let (flow, used) = self.flows.get_mut(&(flow_id.clone(), version))?;
        *used = self.uses;
        Some(Arc::clone(flow))
    }

    /// Inserts a version. A full cache drops the least recently used one.
    fn insert(&mut self, flow_id: &FlowId, version: u32, flow: Arc<CompiledFlow>) {
        if self.flows.len() >= MAX_COMPILED_VERSIONS
            && let Some(oldest) = self
                .flows
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| key.clone())
        {
            self.flows.remove(&oldest);
        }
        self.flows
            .insert((flow_id.clone(), version), (flow, self.uses));
    }
}

/// Refuses what needs later plans than those of `environment`. A renewed epoch is greater than the
/// one before (`EpochId::successor`), as generations grow within each.
fn refuse_later(environment: &Environment, needed: &SetVersion) -> Result<(), Error> {
    let runs = (environment.epoch.as_str(), environment.generation);
    match runs < (needed.epoch.as_str(), needed.generation) {
        true => Err(Error::NodeOutdated {
            running_generation: environment.generation,
        }),
        false => Ok(()),
    }
}

/// Writes down the versions that came with a change, so that messages accepted under them stay
/// runnable.
///
/// # Errors
/// The log cannot be written: the change must not go live.
pub async fn save(
    log: &dyn PlanStore,
    environment: &Environment,
    changes: &[FlowChange],
) -> Result<(), Error> {
    let new = changes.iter().filter(|change| changes_saved_form(change));
    let new: Vec<_> = new.filter_map(|change| change.after.as_deref()).collect();
    for batch in new.chunks(BATCH_SIZE) {
        log.save_plans(to_save(batch, environment.sealer())?)
            .await?;
    }
    Ok(())
}

/// Writes down the versions that a snapshot takes out of service, where the log lacks them. The
/// snapshot may be of a store that was restored together with the log: the log lost these versions,
/// and this node has accepted messages under them since.
///
/// # Errors
/// The log cannot be written: the change must not go live.
pub async fn save_former(
    log: &dyn PlanStore,
    environment: &Environment,
    changes: &[FlowChange],
) -> Result<(), Error> {
    let former = changes.iter().filter(|change| changes_saved_form(change));
    let former: Vec<_> = former
        .filter_map(|change| change.before.as_deref())
        .collect();
    save_missing(log, environment, &former).await
}

/// Writes down the versions of flows of `environment`, where the log lacks them.
///
/// # Errors
/// The log cannot be written.
pub async fn save_missing(
    log: &dyn PlanStore,
    environment: &Environment,
    flows: &[&DeployedFlow],
) -> Result<(), Error> {
    for batch in flows.chunks(BATCH_SIZE) {
        log.save_missing_plans(to_save(batch, environment.sealer())?)
            .await?;
    }
    Ok(())
}

/// Returns whether a change brings a plan that differs in the log from the one before. A pause or
/// a rotated token does not.
fn changes_saved_form(change: &FlowChange) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => !before.has_same_saved_form(after),
        (None, _) | (_, None) => true,
    }
}

fn to_save(flows: &[&DeployedFlow], sealer: Option<&Sealer>) -> Result<Vec<SavedPlan>, Error> {
    let plan = |flow: &&DeployedFlow| {
        Ok(SavedPlan {
            flow_id: flow.id.clone(),
            version: flow.version,
            body: flow.to_saved(sealer)?,
        })
    };
    flows.iter().map(plan).collect()
}
