//! The node's end of the plan stream: starts from the plans on disk, connects, and connects again.
//! `client/session.rs` serves one stream.

pub mod backoff;
mod fallback;
pub mod remote;
mod session;
mod transport;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Sealer;
use kanat_message_log::PlanStore;
use kanat_model::id::{BootId, EnvironmentId, NodeId};
use kanat_plan_stream::Kind;
use kanat_proto::node::v1::{Delta, Load, Resource};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Plans;
use super::change::{self, EnvironmentChange};
use super::environment::Environment;
use super::last_good::{EnvironmentSet, LastGoodStore};
use super::snapshot::FlowChange;
pub use fallback::Fallback;
pub use remote::RemoteSettings;
pub use session::Error;
pub use transport::ControlPlanes;

/// Identity of a node, and the folder of its plans.
#[derive(Debug, Clone)]
pub struct Options {
    pub node_id: NodeId,
    pub boot_id: BootId,
    /// Version of the build.
    pub build: String,
    /// Address that operators reach it at; may be empty.
    pub address: String,
    /// Ids or names of the environments to serve; empty for all.
    pub environments: Vec<String>,
    pub data_dir: PathBuf,
}

/// Reads the load of the node, at every heartbeat.
pub type ReadLoad = Arc<dyn Fn() -> Load + Send + Sync>;

/// Keeps the node's plans up to date.
pub struct PlanStreamClient {
    options: Options,
    plans: Plans,
    log: Arc<dyn PlanStore>,
    disk: Disk,
    control: ControlPlanes,
    read_load: ReadLoad,
    drain: watch::Sender<Option<Duration>>,
}

/// Folder of the plans. It is used off the runtime's threads, and by one thread at a time.
type Disk = Arc<Mutex<LastGoodStore>>;

/// Handle by which the files of the last good plans of a running node are sealed again.
#[derive(Debug, Clone)]
pub struct LastGoodHandle(Disk);

impl LastGoodHandle {
    /// Seals files that are under a former master key under the one in use, and returns their
    /// number.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub async fn reseal(&self) -> io::Result<u32> {
        on_disk(&self.0, LastGoodStore::reseal)
            .await
            .unwrap_or(Ok(0))
    }
}

/// Runs `work` on a thread that may wait for the disk; `None` when the process shuts down.
async fn on_disk<T: Send + 'static>(
    disk: &Disk,
    work: impl FnOnce(&mut LastGoodStore) -> T + Send + 'static,
) -> Option<T> {
    let disk = Arc::clone(disk);
    let work = move || work(&mut disk.lock());
    tokio::task::spawn_blocking(work).await.ok()
}

impl PlanStreamClient {
    /// Starts with the plans that last ran, if there are any: the node is ready at once.
    pub async fn start(
        options: Options,
        plans: Plans,
        log: Arc<dyn PlanStore>,
        sealer: Arc<Sealer>,
        control: ControlPlanes,
        read_load: ReadLoad,
    ) -> Self {
        let last_good = LastGoodStore::new(options.data_dir.join("plans"), sealer);
        let disk = Arc::new(Mutex::new(last_good));
        let client = Self {
            options,
            plans,
            log,
            disk,
            control,
            read_load,
            drain: watch::Sender::new(None),
        };
        client.start_from_last_good().await;
        client
    }

    /// Returns a handle that seals the files of the last good plans again.
    pub fn last_good_handle(&self) -> LastGoodHandle {
        LastGoodHandle(Arc::clone(&self.disk))
    }

    /// Returns the requests of the control plane to drain within a time.
    pub fn drain_requests(&self) -> watch::Receiver<Option<Duration>> {
        self.drain.subscribe()
    }

    /// Follows the control plane until `stop`. Failures are logged, and the stream is opened again.
    pub async fn run(self, stop: CancellationToken) {
        let mut turn = 0;
        let mut failures = 0;
        loop {
            let mut welcomed_at = None;
            let error = match session::run(
                &self,
                self.control.client_for(turn),
                &stop,
                &mut welcomed_at,
            )
            .await
            {
                Ok(()) => return,
                Err(error) => error,
            };
            turn = turn.wrapping_add(1);
            failures = backoff::next_failure_count(
                failures,
                welcomed_at.map_or(Duration::ZERO, |at: Instant| at.elapsed()),
            );
            let wait = backoff::RECONNECT.jittered(failures);
            tracing::warn!(
                %error,
                wait_ms = wait.as_millis(),
                "the plan stream ended: connecting again",
            );
            self.fall_back().await;
            tokio::select! {
                () = sleep(wait) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Makes the last good sets on the disk live, refused resources excepted.
    async fn start_from_last_good(&self) {
        let loaded = self.on_disk(|disk| {
            let found = disk.load();
            (
                found
                    .sets
                    .into_iter()
                    .map(compile_last_good)
                    .collect::<Vec<_>>(),
                found.served,
            )
        });
        let Some((applied, served)) = loaded.await else {
            return;
        };
        // The keys may have changed while the node was stopped.
        if let Err(error) = self.last_good_handle().reseal().await {
            tracing::warn!(
                %error,
                "last good plans cannot be sealed under the first master key: keep the former ones",
            );
        }
        if let Some(served) = served {
            self.plans
                .update(|snapshot| snapshot.with_served(served.clone()));
        }
        for applied in applied {
            let id = &applied.environment.id;
            let generation = applied.environment.generation;
            tracing::info!(environment.id = %id, generation, "running the plans that last ran");
            for refused in &applied.rejections {
                let resource = &refused.resource_id;
                let reason = &refused.message;
                tracing::warn!(
                    resource.id = resource,
                    reason,
                    "this build cannot run a saved resource"
                );
            }
            self.plans
                .update(|snapshot| snapshot.with(applied.environment.clone(), &applied.flows));
        }
    }

    /// Makes an environment live, then saves it; `None` when the process shuts down.
    ///
    /// # Errors
    /// The environment is live, but cannot be saved. It then runs the new plans under an earlier
    /// generation, so that the next stream raises the generation again, by a delta without
    /// resources, and the node saves the whole set.
    async fn activate_and_save(
        &self,
        environment: Environment,
        flows: &[FlowChange],
        accepted: Delta,
    ) -> Option<io::Result<()>> {
        let snapshot = self.plans.load();
        let former = snapshot
            .environment(&environment.id)
            .filter(|former| former.epoch == environment.epoch);
        // A push may bring content without a new generation. The control plane repeats one only to
        // a node of an earlier generation.
        let unsaved_generation = former
            .map_or(0, |former| former.generation)
            .min(environment.generation.saturating_sub(1));
        self.plans.shared.versions.forget(flows);
        self.plans
            .update(|snapshot| snapshot.with(environment.clone(), flows));
        for resource in &accepted.upserts {
            if let Some((Kind::ConnectorInstance, instance)) = Kind::parse(&resource.id) {
                let observed = self.plans.observed();
                observed.forget_calls(&environment.id, instance);
            }
        }
        // Messages of removed flows end, now that no new one begins.
        for gone in flows
            .iter()
            .filter(|change| change.after.is_none())
            .filter_map(|change| change.before.as_ref())
        {
            gone.removed.cancel();
        }
        let plans = self.plans.clone();
        // The generation is reverted on the thread of the disk, which goes on when the stream ends.
        self.on_disk(move |disk| {
            let saved = disk.save(&environment, &accepted);
            if saved.is_err() {
                plans.revert_generation(&environment, unsaved_generation);
            }
            saved
        })
        .await
    }

    /// Runs `work` on a thread that may wait for the disk; `None` when the process shuts down.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LastGoodStore) -> T + Send + 'static,
    ) -> Option<T> {
        on_disk(&self.disk, work).await
    }
}

/// Compiles a last good set. If the node refused a rename, the set can have two resources with one
/// name or path. The resource that was saved later gets the name.
fn compile_last_good(set: EnvironmentSet) -> change::CompiledChange {
    let empty = Environment::empty(set.environment_id, set.epoch.clone());
    let is_api =
        |resource: &Resource| matches!(Kind::parse(&resource.id), Some((Kind::PublishedApi, _)));
    let (apis, mut upserts): (Vec<_>, Vec<_>) = set.resources.into_iter().partition(is_api);
    // A table or an adapter takes its name from an earlier one, but an API is refused if an
    // earlier one has its path.
    upserts.extend(apis.into_iter().rev());
    let change = EnvironmentChange {
        epoch: set.epoch,
        generation: set.generation,
        upserts,
        removals: Vec::new(),
    };
    change::compile_change(&empty, change)
}

/// Returns the environments that the node holds but is not to serve any more. A control plane of
/// another epoch removes none: its database may have been put in place by mistake.
fn no_longer_served(
    snapshot: &super::Snapshot,
    served: &[EnvironmentId],
    epoch: &str,
) -> Vec<EnvironmentId> {
    let held = snapshot
        .environments()
        .filter(|e| !served.contains(&e.id) && e.epoch.as_str() == epoch);
    held.map(|environment| environment.id.clone()).collect()
}

#[cfg(test)]
mod tests;
