//! Plans that this node runs. A [`Snapshot`] is never changed: a new one takes its place with one
//! pointer store, and a message or request that began with the former one ends with it. [`client`]
//! gets plans from the control plane; [`change`] compiles a change.

pub mod change;
pub mod client;
pub mod deployed;
pub mod environment;
pub mod last_good;
pub(crate) mod published;
mod renewal;
pub mod snapshot;
pub mod table;
pub mod versions;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use kanat_engine::{Input, Keys, Mask};
use kanat_mapping::Effort;
use kanat_message_log::PlanStore;
use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_proto::node::v1::EnvironmentState;
use kanat_script::apart;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::observed::Observations;
pub use client::{ControlPlanes, Fallback, LastGoodHandle, PlanStreamClient, RemoteSettings};
pub use deployed::{CompiledFlow, DeployedFlow};
pub use environment::Environment;
use renewal::RefusedTokens;
pub(crate) use renewal::RenewalOutcome;
pub use snapshot::Snapshot;
use versions::FlowVersions;

/// Time without a message after which the compiled form of a flow is dropped; at most twice as
/// long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Handle of the node's plans; its clones share them.
#[derive(Clone)]
pub struct Plans {
    shared: Arc<Shared>,
}

struct Shared {
    current: ArcSwap<Snapshot>,
    /// Changes when another snapshot takes its place.
    replaced: watch::Sender<()>,
    versions: FlowVersions,
    observed: Observations,
    /// Recently refused access tokens.
    refused_tokens: RefusedTokens,
}

/// A version of a flow as a message needs it.
#[derive(Debug, Clone)]
pub struct Runnable {
    pub flow: Arc<CompiledFlow>,
    /// The resources of the flow's environment, as they are now.
    pub environment: Arc<Environment>,
    /// Cancelled when the flow is taken out of service.
    pub removed: CancellationToken,
}

impl Runnable {
    /// Evaluates the flow's keys for a message with this payload and this `trigger` document.
    pub(crate) fn keys(&self, payload: &[u8], trigger: &[u8], now: Timestamp) -> Keys {
        if !self.flow.program.has_keys() {
            return Keys::default();
        }
        apart::evaluate_now(&Effort::default(), |effort| {
            let input = Input {
                payload,
                trigger,
                steps: b"",
                now,
                mask: Mask::none(),
                effort,
            };
            self.flow.program.keys(&input, self.environment.as_ref())
        })
    }
}

impl Plans {
    /// Begins without plans; former versions of flows come from `log`.
    pub fn new(log: Arc<dyn PlanStore>) -> Self {
        let current = ArcSwap::default();
        let versions = FlowVersions::new(log);
        let replaced = watch::Sender::default();
        let observed = Observations::default();
        let refused_tokens = RefusedTokens::default();
        Self {
            shared: Arc::new(Shared {
                current,
                replaced,
                versions,
                observed,
                refused_tokens,
            }),
        }
    }

    /// Returns the observations of connectors, which are reported to the control plane.
    pub fn observed(&self) -> &Observations {
        &self.shared.observed
    }

    /// Returns the plans that run now. Keep them for one request or message, not longer.
    pub fn load(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Returns whether the node has the plans of every environment that it serves. Until then a
    /// flow that is not found may exist.
    pub fn is_complete(&self) -> bool {
        self.shared.current.load().is_complete()
    }

    /// Returns those of the wanted sets that do not run.
    pub(crate) fn outdated(&self, wanted: Vec<EnvironmentState>) -> Vec<EnvironmentState> {
        let snapshot = self.load();
        let runs = |wanted: &EnvironmentState| {
            let environment =
                snapshot.environment(&EnvironmentId::from(wanted.environment_id.as_str()));
            environment.is_some_and(|environment| environment.state() == *wanted)
        };
        wanted.into_iter().filter(|wanted| !runs(wanted)).collect()
    }

    /// Returns the version of a flow of `environment` that a message was accepted under, with the
    /// current resources; `None` when the node does not serve the environment or the version is not
    /// known.
    ///
    /// # Errors
    /// The log cannot be read, the version cannot be compiled by this build, or the flow is
    /// deleted.
    pub async fn runnable_version(
        &self,
        environment: &EnvironmentId,
        flow_id: &FlowId,
        version: u32,
    ) -> Result<Option<Runnable>, versions::Error> {
        let snapshot = self.load();
        let Some(environment) = snapshot.environment(environment) else {
            return Ok(None);
        };
        let deployed = snapshot.flow(flow_id);
        if let Some(deployed) = deployed.filter(|flow| flow.version == version) {
            return snapshot.runnable(deployed);
        }
        let removed = match deployed {
            Some(deployed) => deployed.removed.clone(),
            None => {
                self.shared
                    .versions
                    .refuse_deleted(flow_id, environment)
                    .await?;
                CancellationToken::new()
            }
        };
        let flow = self
            .shared
            .versions
            .get(flow_id, version, environment)
            .await?;
        Ok(flow.map(|flow| Runnable {
            flow,
            environment: Arc::clone(environment),
            removed,
        }))
    }

    /// Writes the versions that run now into the log, where it lacks them.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(crate) async fn save_running(&self) -> Result<(), versions::Error> {
        self.shared.versions.save_running(&self.load()).await
    }

    /// Drops the compiled form of idle flows from time to time, until it is stopped.
    pub(crate) async fn evict_idle(self, stop: CancellationToken) {
        while stop
            .run_until_cancelled(sleep(IDLE_TIMEOUT))
            .await
            .is_some()
        {
            self.load().flows().for_each(|flow| flow.evict_if_idle());
        }
    }

    /// Replaces the snapshot by the one that `next` makes of it. If another thread replaces it
    /// meanwhile, `next` is called again.
    pub(crate) fn update(&self, mut next: impl FnMut(&Snapshot) -> Snapshot) {
        self.shared.current.rcu(|current| next(current));
        self.shared.replaced.send_replace(());
    }

    /// Gives an environment whose plans could not be saved an earlier generation number, unless
    /// later plans run meanwhile. The next hello then has this generation with the hash of the new
    /// set. The control plane answers with a delta without resources, which only
    /// raises the generation. The node then saves the whole set.
    fn revert_generation(&self, unsaved: &Environment, generation: u64) {
        self.update(|snapshot| match snapshot.environment(&unsaved.id) {
            Some(live) if live.epoch == unsaved.epoch && live.generation == unsaved.generation => {
                let live = Environment {
                    generation,
                    ..(**live).clone()
                };
                snapshot.with(live, &[])
            }
            Some(_) | None => snapshot.clone(),
        });
    }

    /// Returns a receiver that changes when other plans run.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.shared.replaced.subscribe()
    }
}

#[cfg(test)]
mod tests;
