//! Deploys of one environment that come at the same time go into one transaction, and are one
//! change of what its nodes run. Each is compiled before, by what was there then, and made anew
//! when that has changed by its turn: so the environment is locked for a few statements a deploy,
//! and those who wait hold no connection to the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kanat_flow::Definition;
use kanat_flow::definition::Trigger;
use kanat_model::id::EnvironmentId;
use kanat_model::{Code, Error};
use kanat_store::flow::{self, Flow};
use kanat_store::flow_version::{self, FlowVersion};
use kanat_store::published::Resource;
use kanat_store::{flow_use, published_api};
use tokio::sync::oneshot;

use super::{EnvironmentNames, refuse_callers};
use crate::app::{App, Caller, Change, timetable};
use crate::push::Version;

/// Most deploys of one transaction.
const TOGETHER: usize = 64;

/// How long a group may take before those in it are told that it cannot be done now.
const WITHIN: Duration = Duration::from_secs(30);

/// The deploys that wait for their turn, by environment.
#[derive(Debug, Clone, Default)]
pub struct Deploys(Arc<Mutex<HashMap<EnvironmentId, Arc<Line>>>>);

/// A deploy as it was made from what was there a moment ago.
#[derive(Debug)]
pub struct Ready {
    /// As it is to be; at the revision that it was read at.
    pub flow: Flow,
    pub definition: Definition,
    pub names: EnvironmentNames,
    /// Resource ids of what the plan uses.
    pub uses: Vec<String>,
    /// The plan.
    pub resource: Resource,
    /// Who deploys it.
    pub deployed_by: Caller,
    /// What changed, for the version.
    pub summary: String,
}

/// What became of it.
pub enum Ended {
    Done(Box<Flow>, Option<Version>),
    /// What it was made from has changed.
    Overtaken,
}

#[derive(Debug, Default)]
struct Line {
    /// Held while a group is written.
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Vec<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    ready: Ready,
    answer: oneshot::Sender<Result<Ended, Error>>,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done(..) => "Done",
            Self::Overtaken => "Overtaken",
        })
    }
}

impl Deploys {
    /// Whoever asks may go away: what has begun comes to an end.
    pub async fn take_turn(
        &self,
        app: &App,
        environment: &EnvironmentId,
        ready: Ready,
    ) -> Result<Ended, Error> {
        let line = Arc::clone(lock(&self.0).entry(environment.clone()).or_default());
        let (answer, ended) = oneshot::channel();
        lock(&line.waiting).push(Waiting { ready, answer });
        // One task for each: the first takes all who wait along, and the others find nothing to do.
        let app = app.clone();
        let environment = environment.clone();
        let tasks = app.tasks.clone();
        let under_way = app.master_keys.under_way.begin();
        tasks.run_to_completion(async move {
            let _under_way = under_way;
            let _turn = line.turn.lock().await;
            // Those whose answer never comes, of the group and of those behind it, learn that it
            // cannot be done now.
            if tokio::time::timeout(WITHIN, line.serve(&app, &environment))
                .await
                .is_err()
            {
                lock(&line.waiting).clear();
            }
        });
        ended.await.unwrap_or_else(|_| {
            Err(Error::unavailable(
                "the deploy could not be written in time",
            ))
        })
    }
}

impl Line {
    /// Writes those who wait, who are more by the time that the environment is ours.
    async fn serve(&self, app: &App, environment: &EnvironmentId) {
        if lock(&self.waiting).is_empty() {
            return;
        }
        let begun = Change::begin(app, environment).await;
        let group = self.group();
        let mut change = match begun {
            Ok(change) => change,
            Err(error) => {
                return group
                    .into_iter()
                    .for_each(|waiting| waiting.end(Err(error.clone())));
            }
        };
        match write_all(&mut change, environment, &group).await {
            Ok(written) => end(change, group, written).await,
            Err(error) => {
                drop(change);
                each_alone(app, environment, group, error).await;
            }
        }
    }

    fn group(&self) -> Vec<Waiting> {
        let mut waiting = lock(&self.waiting);
        let count = waiting.len().min(TOGETHER);
        waiting.drain(..count).collect()
    }
}

impl Waiting {
    /// Nobody may be left to hear it.
    fn end(self, ended: Result<Ended, Error>) {
        let _ = self.answer.send(ended);
    }
}

/// One of them cannot be written, and the transaction is lost with it: who is alone has that error,
/// of the others each gets its own transaction. That the database is away is an error of all.
async fn each_alone(app: &App, environment: &EnvironmentId, group: Vec<Waiting>, error: Error) {
    if group.len() == 1 || error.code == Code::Unavailable {
        return group
            .into_iter()
            .for_each(|waiting| waiting.end(Err(error.clone())));
    }
    for waiting in group {
        let alone = [waiting];
        match written_alone(app, environment, &alone).await {
            Ok((change, written)) => end(change, alone.into(), written).await,
            Err(error) => alone
                .into_iter()
                .for_each(|waiting: Waiting| waiting.end(Err(error.clone()))),
        }
    }
}

async fn written_alone<'a>(
    app: &'a App,
    environment: &EnvironmentId,
    alone: &[Waiting],
) -> Result<(Change<'a>, Vec<Result<Written, Error>>), Error> {
    let mut change = Change::begin(app, environment).await?;
    let written = write_all(&mut change, environment, alone).await?;
    Ok((change, written))
}

/// Commits, and tells each what became of it.
async fn end(change: Change<'_>, group: Vec<Waiting>, written: Vec<Result<Written, Error>>) {
    let published = change.publish().await;
    for (waiting, written) in group.into_iter().zip(written) {
        waiting.end(match (written, &published) {
            (Err(error), _) => Err(error),
            (Ok(Written::Not), _) => Ok(Ended::Overtaken),
            (Ok(Written::As(flow)), Ok(version)) => Ok(Ended::Done(flow, version.clone())),
            (Ok(Written::As(_)), Err(error)) => Err(error.clone()),
        });
    }
}

enum Written {
    As(Box<Flow>),
    /// What it was made from has changed.
    Not,
}

/// Writes all that still are what they should be. Errors of one alone are found before anything of
/// it is written, and are among what is given; any other error means that the transaction cannot be
/// committed.
async fn write_all(
    change: &mut Change<'_>,
    environment: &EnvironmentId,
    group: &[Waiting],
) -> Result<Vec<Result<Written, Error>>, Error> {
    let names = EnvironmentNames::load(change.db(), environment).await?;
    let mut all = Vec::new();
    let mut resources = Vec::new();
    for Waiting { ready, .. } in group {
        let written = write(change, &names, ready).await?;
        if let Ok(Written::As(_)) = &written {
            resources.push(&ready.resource);
        }
        all.push(written);
    }
    if let Some((first, others)) = resources.split_first() {
        change.put_together(first, others).await?;
    }
    Ok(all)
}

async fn write(
    change: &mut Change<'_>,
    names: &EnvironmentNames,
    ready: &Ready,
) -> Result<Result<Written, Error>, Error> {
    if ready.names != *names {
        return Ok(Ok(Written::Not));
    }
    let mut flow = ready.flow.clone();
    if !matches!(ready.definition.source.trigger, Trigger::Api) {
        let callers = published_api::uses::callers(change.db(), &flow.id).await?;
        if let Err(refused) = refuse_callers(&flow, &callers, "its trigger stays api") {
            return Ok(Err(refused));
        }
    }
    match flow::update(change.db(), &mut flow).await {
        Err(kanat_store::Error::Changed { .. }) => return Ok(Ok(Written::Not)),
        updated => updated?,
    }
    let version = FlowVersion {
        flow_id: flow.id.clone(),
        version: flow.version,
        yaml_config: flow.yaml_config.clone(),
        sealed_config: flow.sealed_config.clone(),
        change_summary: ready.summary.clone(),
        created_at: flow.updated_at,
        created_by: ready.deployed_by.name.clone(),
    };
    flow_version::insert(change.db(), &version).await?;
    ready
        .deployed_by
        .note_made(change.db(), flow.id.as_str())
        .await?;
    timetable::follow(change.db(), &flow, &ready.definition, flow.updated_at).await?;
    flow_use::replace(change.db(), &flow.id, &ready.uses).await?;
    Ok(Ok(Written::As(Box::new(flow))))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
