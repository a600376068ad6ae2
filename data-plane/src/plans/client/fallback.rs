//! Fallback plans, for a node that lacks the plans of an environment and reaches no control plane.
//! They come from a file, or from the shared store.

use std::sync::Arc;

use futures::future::BoxFuture;
use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::snapshot::verify_set;
use kanat_proto::node::v1::{PublishedSet, PublishedSets, SnapshotBegin};

use super::PlanStreamClient;
use crate::plans::change::{self, CompiledChange, EnvironmentChange};
use crate::plans::environment::Environment;
use crate::plans::last_good::EnvironmentSet;
use crate::plans::snapshot::Snapshot;
use crate::plans::versions;

type ReadSets = dyn Fn() -> BoxFuture<'static, Result<PublishedSets, String>> + Send + Sync;

/// Reader of fallback plans; its errors are for an operator.
#[derive(Clone)]
pub struct Fallback(Arc<ReadSets>);

/// Reason why fallback plans are not used.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}")]
    Read(String),
    #[error("they have no environment")]
    NoEnvironment,
    #[error("the set of environment {0:?} is damaged")]
    Damaged(String),
    #[error("plans cannot be kept: {0}")]
    Versions(#[from] versions::Error),
    #[error("plans cannot be saved: {0}")]
    Disk(#[from] std::io::Error),
    #[error("the node shuts down")]
    ShuttingDown,
}

impl Fallback {
    pub fn new<F>(read: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<PublishedSets, String>> + Send + Sync + 'static,
    {
        Self(Arc::new(read))
    }
}

impl std::fmt::Debug for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fallback")
    }
}

impl PlanStreamClient {
    /// Runs the fallback plans if the node lacks the plans of an environment. Held sets are then
    /// replaced by newer ones too. It is called whenever no plan stream could be opened, and when
    /// one ended.
    pub(super) async fn fall_back(&self) {
        let Some(fallback) = self
            .control
            .fallback()
            .filter(|_| !self.plans.is_complete())
        else {
            return;
        };
        if let Err(error) = self.adopt(fallback).await {
            tracing::warn!(%error, "the fallback plans cannot be read, run or saved");
        }
    }

    async fn adopt(&self, fallback: &Fallback) -> Result<(), Error> {
        let sets = (fallback.0)().await.map_err(Error::Read)?.sets;
        let sets = sets
            .into_iter()
            .map(verify)
            .collect::<Result<Vec<_>, _>>()?;
        if sets.is_empty() {
            return Err(Error::NoEnvironment);
        }
        let held = self.plans.load();
        let served = served_with(&held, &sets);
        let mut saved = Ok(());
        for set in sets.into_iter().filter(|set| is_newer(&held, set)) {
            let held = Arc::clone(&held);
            let id = set.environment_id.clone();
            let generation = set.generation;
            let applied = tokio::task::spawn_blocking(move || compile_fallback(&held, set));
            let CompiledChange {
                environment,
                flows,
                accepted,
                ..
            } = applied.await.map_err(|_| Error::ShuttingDown)?;
            versions::save(&*self.log, &environment, &flows).await?;
            saved = saved.and(
                self.activate_and_save(environment, &flows, accepted)
                    .await
                    .ok_or(Error::ShuttingDown)?,
            );
            tracing::info!(environment.id = %id, generation, "running fallback plans");
        }
        self.plans
            .update(|snapshot| snapshot.with_served(served.clone()));
        Ok(saved.and(
            self.on_disk(move |disk| disk.note_served(&served))
                .await
                .ok_or(Error::ShuttingDown)?,
        )?)
    }
}

/// Returns the environments that the node is to serve: those that it knows from a control plane,
/// and those of the sets. An environment without a set stays, so that the node is not complete
/// without its plans.
fn served_with(held: &Snapshot, sets: &[EnvironmentSet]) -> Vec<EnvironmentId> {
    let mut served = held.served().unwrap_or_default().to_vec();
    for set in sets {
        if !served.contains(&set.environment_id) {
            served.push(set.environment_id.clone());
        }
    }
    served
}

/// Returns whether `set` is a later generation of what the node holds, or the node holds none. A
/// set of another epoch is not adopted, also when that epoch is greater: only a control plane makes
/// a node change its epoch.
fn is_newer(held: &Snapshot, set: &EnvironmentSet) -> bool {
    let held = held.environment(&set.environment_id);
    held.is_none_or(|held| held.epoch == set.epoch && held.generation < set.generation)
}

/// Compiles the set as a change of what the node holds of its environment.
fn compile_fallback(held: &Snapshot, set: EnvironmentSet) -> CompiledChange {
    let begin = SnapshotBegin {
        epoch: set.epoch.to_string(),
        generation: set.generation,
        ..SnapshotBegin::default()
    };
    let held = held.environment(&set.environment_id);
    let current = held.map_or_else(
        || Environment::empty(set.environment_id, set.epoch),
        |held| (**held).clone(),
    );
    let change = EnvironmentChange::from_snapshot(&current, &begin, set.resources);
    change::compile_change(&current, change)
}

/// Verifies a set: the hash of each resource, and that of the whole set.
fn verify(set: PublishedSet) -> Result<EnvironmentSet, Error> {
    let id = set
        .environment
        .map(|environment| environment.id)
        .unwrap_or_default();
    let set_hash = verify_set(&set.resources)
        .ok()
        .filter(|hash| !id.is_empty() && hash.to_vec() == set.set_hash);
    Ok(EnvironmentSet {
        set_hash: set_hash.ok_or_else(|| Error::Damaged(id.clone()))?,
        environment_id: EnvironmentId::new(id),
        epoch: EpochId::new(set.epoch),
        generation: set.generation,
        resources: set.resources,
    })
}
