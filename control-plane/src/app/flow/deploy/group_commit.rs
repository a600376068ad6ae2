//! Group commit of the deploys of one environment: concurrent deploys go into one transaction, and
//! are one change of what the nodes run. A deploy is compiled before it is submitted, and is stale
//! when its flow, or any name or variable of the environment, has changed since. The environment is
//! locked only for a few statements per deploy. Deploys that wait hold no connection to the
//! database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kanat_flow::Definition;
use kanat_model::id::EnvironmentId;
use kanat_model::{Code, Error, Result};
use kanat_store::audit::Entry;
use kanat_store::flow::{self, Flow};
use kanat_store::flow_use;
use kanat_store::flow_version::{self, FlowVersion};
use kanat_store::published::Resource;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::{EnvironmentNames, calling_apis};
use crate::app::{App, Caller, PublishTransaction, audit, timetable};
use crate::push::SetVersion;

/// Deploys of one transaction.
const MAX_GROUP: usize = 64;

/// Time limit of one group. After it, its deploys fail as unavailable, and so do those that waited
/// before the group began and found no place in it.
const GROUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Queues of deploys by environment.
#[derive(Debug, Clone, Default)]
pub struct DeployQueues(Arc<Mutex<HashMap<EnvironmentId, Arc<DeployQueue>>>>);

/// A deploy that was compiled from what the store had a moment ago.
#[derive(Debug)]
pub struct PreparedDeploy {
    /// The flow as it will be, at the revision that it was read at.
    pub flow: Flow,
    pub definition: Definition,
    pub names: EnvironmentNames,
    /// Resource ids of what the plan uses.
    pub uses: Vec<String>,
    /// The plan.
    pub resource: Resource,
    /// Entry of the audit log.
    pub entry: Entry,
    /// Caller of the deploy.
    pub deployed_by: Caller,
    /// Summary of the change, for the version.
    pub summary: String,
}

/// The end of a deploy.
pub enum DeployOutcome {
    Committed(Box<Flow>, Option<SetVersion>),
    /// The flow, or a name or variable of the environment, has changed since the deploy was
    /// prepared.
    Stale,
}

#[derive(Debug, Default)]
struct DeployQueue {
    /// Held while a group is written.
    write_lock: tokio::sync::Mutex<()>,
    waiting: Mutex<Vec<QueuedDeploy>>,
}

#[derive(Debug)]
struct QueuedDeploy {
    prepared: PreparedDeploy,
    queued_at: Instant,
    answer: oneshot::Sender<Result<DeployOutcome>>,
}

impl std::fmt::Debug for DeployOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Committed(..) => "Committed",
            Self::Stale => "Stale",
        })
    }
}

impl DeployQueues {
    /// Writes a deploy together with others of its environment, also when the caller goes away.
    pub async fn submit(
        &self,
        app: &App,
        environment: &EnvironmentId,
        prepared: PreparedDeploy,
    ) -> Result<DeployOutcome> {
        let queue = Arc::clone(self.0.lock().entry(environment.clone()).or_default());
        let (answer, ended) = oneshot::channel();
        queue.waiting.lock().push(QueuedDeploy {
            prepared,
            queued_at: Instant::now(),
            answer,
        });
        // One task for each deploy: the first writes all that wait, the others find nothing to do.
        let app = app.clone();
        let environment = environment.clone();
        let tasks = app.tasks.clone();
        let active = app.master_keys.calls.begin();
        tasks.run_to_completion(async move {
            let _active = active;
            let _writing = queue.write_lock.lock().await;
            let begun = Instant::now();
            if timeout(GROUP_TIMEOUT, queue.serve(&app, &environment))
                .await
                .is_err()
            {
                queue.fail_queued_before(begun);
            }
        });
        // A deploy of a group that timed out: the commit may have been under way.
        ended.await.unwrap_or_else(|_| {
            Err(Error::unavailable(
                "the database did not confirm the deploy in time, it may have been written",
            ))
        })
    }
}

impl DeployQueue {
    /// Writes a group of the deploys that wait once the environment is locked.
    async fn serve(&self, app: &App, environment: &EnvironmentId) {
        if self.waiting.lock().is_empty() {
            return;
        }
        let begun = PublishTransaction::begin(app, environment).await;
        let group = self.take_group();
        let mut change = match begun {
            Ok(change) => change,
            Err(error) => {
                return group
                    .into_iter()
                    .for_each(|waiting| waiting.reply(Err(error.clone())));
            }
        };
        match write_all(&mut change, environment, &group).await {
            Ok(written) => commit_and_reply(change, group, written).await,
            Err(error) => {
                drop(change);
                each_alone(app, environment, group, error).await;
            }
        }
    }

    /// Answers the deploys that have waited for the whole [`GROUP_TIMEOUT`] without a place in the
    /// group. Nothing of them was written. Later ones wait for the next group.
    fn fail_queued_before(&self, begun: Instant) {
        let expired: Vec<_> = self
            .waiting
            .lock()
            .extract_if(.., |waiting| waiting.queued_at <= begun)
            .collect();
        for waiting in expired {
            waiting.reply(Err(Error::unavailable(
                "the deploy could not be written in time",
            )));
        }
    }

    fn take_group(&self) -> Vec<QueuedDeploy> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(MAX_GROUP);
        waiting.drain(..count).collect()
    }
}

impl QueuedDeploy {
    /// Answers the caller, which may be gone.
    fn reply(self, ended: Result<DeployOutcome>) {
        let _ = self.answer.send(ended);
    }
}

/// Handles a failed transaction: each deploy of the group gets its own transaction, so that the one
/// that cannot be written fails alone. An unavailable database is an error of all.
async fn each_alone(
    app: &App,
    environment: &EnvironmentId,
    group: Vec<QueuedDeploy>,
    error: Error,
) {
    if group.len() == 1 || error.code == Code::Unavailable {
        return group
            .into_iter()
            .for_each(|waiting| waiting.reply(Err(error.clone())));
    }
    for waiting in group {
        let alone = [waiting];
        match written_alone(app, environment, &alone).await {
            Ok((change, written)) => commit_and_reply(change, alone.into(), written).await,
            Err(error) => alone
                .into_iter()
                .for_each(|waiting: QueuedDeploy| waiting.reply(Err(error.clone()))),
        }
    }
}

async fn written_alone<'a>(
    app: &'a App,
    environment: &EnvironmentId,
    alone: &[QueuedDeploy],
) -> Result<(PublishTransaction<'a>, Vec<WriteOutcome>)> {
    let mut change = PublishTransaction::begin(app, environment).await?;
    let written = write_all(&mut change, environment, alone).await?;
    Ok((change, written))
}

/// Commits the transaction, and answers each deploy of the group.
async fn commit_and_reply(
    change: PublishTransaction<'_>,
    group: Vec<QueuedDeploy>,
    written: Vec<WriteOutcome>,
) {
    let published = change.publish().await;
    for (waiting, written) in group.into_iter().zip(written) {
        waiting.reply(match (written, &published) {
            (WriteOutcome::Refused(error), _) => Err(error),
            (WriteOutcome::Stale, _) => Ok(DeployOutcome::Stale),
            (WriteOutcome::Written(flow), Ok(version)) => {
                Ok(DeployOutcome::Committed(flow, version.clone()))
            }
            (WriteOutcome::Written(_), Err(error)) => Err(error.clone()),
        });
    }
}

enum WriteOutcome {
    Written(Box<Flow>),
    /// The flow, or a name or variable of the environment, has changed since the deploy was
    /// prepared.
    Stale,
    /// The deploy cannot be done; nothing of it was written.
    Refused(Error),
}

/// Writes the deploys that are not stale.
///
/// # Errors
///
/// An error means that the transaction cannot be committed. A deploy that is refused by itself is
/// an outcome.
async fn write_all(
    change: &mut PublishTransaction<'_>,
    environment: &EnvironmentId,
    group: &[QueuedDeploy],
) -> Result<Vec<WriteOutcome>> {
    let names = EnvironmentNames::load(change, environment).await?;
    let mut all = Vec::new();
    let mut resources = Vec::new();
    for QueuedDeploy { prepared, .. } in group {
        let written = write(change, &names, prepared).await?;
        if let WriteOutcome::Written(_) = &written {
            resources.push(&prepared.resource);
        }
        all.push(written);
    }
    if let Some((first, others)) = resources.split_first() {
        change.put_all(first, others).await?;
    }
    Ok(all)
}

async fn write(
    change: &mut PublishTransaction<'_>,
    names: &EnvironmentNames,
    prepared: &PreparedDeploy,
) -> Result<WriteOutcome> {
    if prepared.names != *names {
        return Ok(WriteOutcome::Stale);
    }
    let mut flow = prepared.flow.clone();
    if let Some(refused) = calling_apis::deploy_refusal(change, &flow, &prepared.definition).await?
    {
        return Ok(WriteOutcome::Refused(refused));
    }
    match flow::update(change, &mut flow).await {
        Err(kanat_store::Error::Changed { .. }) => return Ok(WriteOutcome::Stale),
        updated => updated?,
    }
    let maker = prepared.deployed_by.principal();
    let version = FlowVersion {
        flow_id: flow.id.clone(),
        version: flow.version,
        yaml_config: flow.yaml_config.clone(),
        sealed_config: flow.sealed_config.clone(),
        change_summary: prepared.summary.clone(),
        created_at: flow.updated_at,
        created_by_type: Some(maker.kind),
        created_by_id: Some(maker.id),
        created_by_name: maker.name,
    };
    flow_version::insert(change, &version).await?;
    prepared
        .deployed_by
        .record_idempotent_result(change, &flow.id)
        .await?;
    audit::write(change, &prepared.entry).await?;
    timetable::sync_schedule_with_definition(change, &flow, &prepared.definition, flow.updated_at)
        .await?;
    flow_use::replace(change, &flow.id, flow.version, &prepared.uses).await?;
    Ok(WriteOutcome::Written(Box::new(flow)))
}
