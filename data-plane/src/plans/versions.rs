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

use super::deployed::Flow;
use super::environment::Environment;
use super::snapshot::FlowChange;

/// Largest number of compiled versions in the cache.
const MAX_COMPILED_VERSIONS: usize = 1_000;

/// Number of plans that one call saves.
const BATCH_SIZE: usize = 500;

/// Reason why a version is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the message log neither keeps nor gives versions of flows: {0}")]
    Log(#[from] kanat_message_log::Error),
    #[error("flow {0} was deleted")]
    Deleted(FlowId),
    #[error("the flow was changed after generation {generation}, which this node runs")]
    Later { generation: u64 },
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

/// Former versions by flow and number.
pub struct Versions {
    log: Arc<dyn PlanStore>,
    compiled_cache: Mutex<CompiledVersions>,
}

#[derive(Default)]
struct CompiledVersions {
    flows: HashMap<(FlowId, u32), (Arc<Flow>, u64)>,
    uses: u64,
}

impl Versions {
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
    ) -> Result<Option<Arc<Flow>>, Error> {
        if let Some(flow) = self.compiled_cache.lock().used(flow_id, version) {
            return Ok(Some(flow));
        }
        let Some(body) = self.log.plan(flow_id, version).await? else {
            return Ok(None);
        };
        let plan = saved::read(flow_id.as_str(), version, body, environment.sealer()).map_err(
            |source| Error::Saved {
                flow_id: flow_id.clone(),
                version,
                source,
            },
        )?;
        if let Some(made_from) = &plan.made_from {
            refuse_later(environment, made_from)?;
        }
        let flow = Flow::compile(plan).map_err(|source| Error::Compile {
            flow_id: flow_id.clone(),
            version,
            source,
        })?;
        let flow = Arc::new(flow);
        self.compiled_cache
            .lock()
            .keep(flow_id, version, Arc::clone(&flow));
        Ok(Some(flow))
    }

    /// Refuses a flow that `environment` lacks because it was deleted. The mark may exist although
    /// the deletion failed. It counts only if the node already runs the deleting generation or a
    /// later one.
    ///
    /// # Errors
    /// The flow is deleted, or is marked so by a later change; the log cannot be read.
    pub async fn refuse_deleted(
        &self,
        flow_id: &FlowId,
        environment: &Environment,
    ) -> Result<(), Error> {
        let version = SavedPlan::DELETION_MARK;
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
    fn used(&mut self, flow_id: &FlowId, version: u32) -> Option<Arc<Flow>> {
        self.uses += 1;
        let (flow, used) = self.flows.get_mut(&(flow_id.clone(), version))?;
        *used = self.uses;
        Some(Arc::clone(flow))
    }

    fn keep(&mut self, flow_id: &FlowId, version: u32, flow: Arc<Flow>) {
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
        true => Err(Error::Later {
            generation: environment.generation,
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
    let sealer = environment.sealer();
    let plans = changes
        .iter()
        .filter_map(|change| to_save(change, sealer).transpose());
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    for batch in plans.chunks(BATCH_SIZE) {
        log.save_plans(batch.to_vec()).await?;
    }
    Ok(())
}

/// Returns the plan that a change adds to the saved ones. A pause or a rotated token adds none.
fn to_save(change: &FlowChange, sealer: Option<&Sealer>) -> Result<Option<SavedPlan>, Error> {
    let Some(after) = change.after.as_ref() else {
        return Ok(None);
    };
    if change
        .before
        .as_ref()
        .is_some_and(|before| before.is_saved_as(after))
    {
        return Ok(None);
    }
    Ok(Some(SavedPlan {
        flow_id: after.id.clone(),
        version: after.version,
        body: after.saved(sealer)?,
    }))
}
