//! Use-cases that put a flow into service and change how it serves: deploy, rollback, pause,
//! resume. Each answers once the change is live.

mod group_commit;

use kanat_engine::Program;
use kanat_flow::{Definition, Identity};
use kanat_message_log::{Filter, Position};
use kanat_model::flow::Status;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::message;
use kanat_model::page::Page;
use kanat_model::{Code, Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{FlowPlan, SetVersion, trigger};
use kanat_store::flow::{self, Flow};
use kanat_store::flow_version::FlowVersion;
use kanat_store::{Db, Tx, flow_version};
use serde_json::Value;

use super::names::EnvironmentNames;
use super::{calling_apis, definition, fields, identity, uses, version, webhook};
use crate::app::audit::{self, Audited};
use crate::app::{App, Call, ChangeResult, PublishTransaction, change, name};
pub use group_commit::DeployQueues;
use group_commit::{DeployOutcome, PreparedDeploy};

/// Largest number of attempts of a deploy. An attempt fails if others change its input meanwhile.
/// If n callers deploy one flow at once, one of them succeeds in each round.
const MAX_ATTEMPTS: usize = 100;

/// How the draft is put into service.
#[derive(Debug, Default)]
pub struct Deploy {
    /// Summary of what changed; the draft's own when it is left out.
    pub summary: Option<String>,
    /// A paused flow stays paused.
    pub keep_paused: bool,
}

/// Version that is put into service again.
#[derive(Debug)]
pub struct Rollback {
    pub version: u32,
    /// Throws away a draft that is not deployed.
    pub discard_draft: bool,
}

/// A flow that was put into service.
#[derive(Debug)]
pub struct Deployment {
    pub flow: Flow,
    /// Number of messages that the flow held; `None` for a flow that was not paused.
    pub held_messages: Option<u64>,
}

/// Source of a deploy.
enum DeployRequest {
    Draft(Deploy),
    Version(Rollback),
}

/// Puts the draft into service as a new version.
pub async fn deploy(call: &Call, id: &FlowId, deploy: Deploy) -> Result<ChangeResult<Deployment>> {
    let summary = deploy
        .summary
        .map(|summary| name::check_text("changeSummary", summary))
        .transpose()?;
    put_into_service(
        call,
        id,
        &DeployRequest::Draft(Deploy { summary, ..deploy }),
    )
    .await
}

/// Puts the definition of an earlier version into service, as a new version; it becomes the draft
/// too. Errors when that would throw away a draft and the caller does not ask for it.
pub async fn rollback(
    call: &Call,
    id: &FlowId,
    rollback: Rollback,
) -> Result<ChangeResult<Deployment>> {
    if rollback.version == 0 {
        return Err(Error::field(
            "versionNumber",
            "is required, and begins at 1",
        ));
    }
    put_into_service(call, id, &DeployRequest::Version(rollback)).await
}

/// Holds the flow's messages from now on.
pub async fn pause(call: &Call, id: &FlowId) -> Result<ChangeResult<Flow>> {
    set_status(call, id, Status::pause).await
}

/// Runs what was held, and takes messages again.
pub async fn resume(call: &Call, id: &FlowId) -> Result<ChangeResult<Flow>> {
    set_status(call, id, Status::resume).await
}

/// Publishes the deployed plan of `flow` again with its present name, tokens and pause, which are
/// not part of the definition.
pub async fn publish_again(change: &mut PublishTransaction<'_>, flow: &Flow) -> Result<()> {
    let found = deployed_plan(change.app, change, &flow.environment_id, &flow.id).await?;
    let Some(mut plan) = found else { return Ok(()) };
    plan.flow_name = flow.name.clone();
    plan.paused = flow.status == Status::Paused;
    if let Some(trigger::Kind::Webhook(hook)) = plan
        .trigger
        .as_mut()
        .and_then(|trigger| trigger.kind.as_mut())
    {
        let tokens =
            webhook::tokens(change.app, change, &mut flow.clone(), Timestamp::now()).await?;
        hook.tokens = tokens.iter().map(webhook::to_plan).collect();
    }
    let body = kanat_plan_stream::body::encode_flow(&plan);
    change.put_body(Kind::Flow, &flow.id, &body).await
}

async fn set_status(
    call: &Call,
    id: &FlowId,
    next: fn(Status) -> Result<Status>,
) -> Result<ChangeResult<Flow>> {
    let mut change = call.change().await?;
    let (mut flow, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        return change.answer_repeat(flow).await;
    }
    let before = flow.clone();
    flow.status = next(flow.status)?;
    flow.updated_at = Timestamp::now();
    flow::update(&mut change, &mut flow).await?;
    audit::updated(call, &mut change, &before, &flow).await?;
    publish_again(&mut change, &flow).await?;
    change.mark_urgent();
    change.commit(flow).await
}

/// Puts a draft or an earlier version into service. All checks come before the first write of this
/// deploy. If others change its input meanwhile, it is prepared again, [`MAX_ATTEMPTS`] times at
/// most.
async fn put_into_service(
    call: &Call,
    id: &FlowId,
    asked: &DeployRequest,
) -> Result<ChangeResult<Deployment>> {
    let environment = &call.caller.environment_id;
    for _ in 0..MAX_ATTEMPTS {
        let mut tx = call.read().await?;
        let flow = call.existing(&mut tx, id).await?;
        if call.caller.find_idempotent_result(&mut tx).await?.is_some() {
            let current = change::current_version(&mut tx, environment).await?;
            drop(tx);
            let applied = change::wait_for_nodes(&call.app, environment, current.as_ref()).await;
            return Ok(ChangeResult {
                value: Deployment {
                    flow,
                    held_messages: None,
                },
                applied,
            });
        }
        call.if_match.check(flow.revision)?;
        let was_paused = flow.status == Status::Paused;
        let before = flow.state(&call.app)?;
        let flow = asked.apply_to(flow, &mut tx).await?;
        if runs_already(&call.app, &flow, &mut tx).await? {
            drop(tx);
            return republish_unchanged(call, id, asked.status_transition()).await;
        }
        let definition = asked.definition(&call.app, &flow)?;
        let prepared = prepare(
            call,
            flow,
            before,
            definition,
            asked.status_transition(),
            tx,
        )
        .await?;
        let held_messages = if was_paused {
            Some(count_waiting(call, id).await?)
        } else {
            None
        };
        if let DeployOutcome::Committed(flow, version) = call
            .app
            .deploy_queues
            .submit(&call.app, environment, prepared)
            .await?
        {
            let applied = change::wait_for_nodes(&call.app, environment, version.as_ref()).await;
            return Ok(ChangeResult {
                value: Deployment {
                    flow: *flow,
                    held_messages,
                },
                applied,
            });
        }
    }
    Err(Error::new(
        Code::Aborted,
        "the flow, or what it names, is being changed by others: try again",
    ))
}

impl DeployRequest {
    /// Returns the flow with the content that is to be its next version.
    async fn apply_to(&self, mut flow: Flow, db: &mut Db) -> Result<Flow> {
        match self {
            Self::Draft(Deploy { summary: None, .. }) => {}
            Self::Draft(Deploy {
                summary: Some(summary),
                ..
            }) => flow.change_summary.clone_from(summary),
            Self::Version(Rollback {
                version,
                discard_draft,
            }) => {
                let former = version::existing(db, &flow, *version).await?;
                if flow.draft && !discard_draft {
                    return Err(Error::precondition(format!(
                        "flow {:?} has a draft that is not deployed, and a rollback would throw \
                         it away: deploy it first, or set discardDraft",
                        flow.name
                    )));
                }
                flow.yaml_config = former.yaml_config;
                flow.sealed_config = former.sealed_config;
                flow.change_summary = format!("rollback to version {version}");
            }
        }
        Ok(flow)
    }

    /// Reads the definition that is to be the next version; one that ran before is taken as it ran.
    fn definition(&self, app: &App, flow: &Flow) -> Result<Definition> {
        match self {
            Self::Draft(_) => definition::checked(&app.sealer, flow),
            Self::Version(_) => definition::stored(&app.sealer, flow),
        }
    }

    /// Returns the function from the status of the flow to the one that the deploy leads to.
    fn status_transition(&self) -> fn(Status) -> Status {
        match self {
            Self::Draft(Deploy {
                keep_paused: true, ..
            }) => |status| match status {
                Status::Paused => Status::Paused,
                Status::Draft | Status::Active => status.deploy(),
            },
            Self::Draft(Deploy {
                keep_paused: false, ..
            })
            | Self::Version(_) => Status::deploy,
        }
    }
}

/// Prepares a deploy without the lock of the environment. Others may change its inputs meanwhile;
/// then it is stale.
async fn prepare(
    call: &Call,
    mut flow: Flow,
    before: Value,
    definition: Definition,
    status: fn(Status) -> Status,
    mut tx: Tx,
) -> Result<PreparedDeploy> {
    let made_from = change::current_version(&mut tx, &call.caller.environment_id).await?;
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    let missing = fields::faults(call, &mut tx, &definition, &names).await?;
    if !missing.is_empty() {
        return Err(definition::invalid(
            "the definition does not fit the environment",
            &missing,
        ));
    }
    let now = Timestamp::now();
    flow.status = status(flow.status);
    flow.version += 1;
    flow.draft = false;
    // The summary belongs to this version only.
    let summary = std::mem::take(&mut flow.change_summary);
    flow.trigger_kind = definition.source.trigger.as_str().to_owned();
    flow.updated_at = now;
    let mut identity = identity(&flow);
    if flow.trigger_kind == webhook::TRIGGER {
        identity.webhook_tokens = webhook::tokens(&call.app, &mut tx, &mut flow, now).await?;
    }
    drop(tx);
    let plan = FlowPlan {
        made_from: made_from.map(|version| SetVersion {
            epoch: version.epoch.into_string(),
            generation: version.generation,
        }),
        ..compile(&definition, &names, identity)?
    };
    let resource_id = Kind::Flow.resource_id(flow.id.as_str());
    Ok(PreparedDeploy {
        uses: uses::resource_ids(&plan, &names),
        resource: change::sealed(
            &call.app.sealer,
            &call.caller.environment_id,
            &resource_id,
            &kanat_plan_stream::body::encode_flow(&plan),
        ),
        entry: audit::entry(
            call,
            flow.entity(),
            Some(before),
            Some(flow.state(&call.app)?),
        ),
        deployed_by: call.caller.clone(),
        summary,
        flow,
        definition,
        names,
    })
}

/// Returns whether `flow` as it is to be deployed is what runs: the definition, and the plan that
/// it compiles to today.
async fn runs_already(app: &App, flow: &Flow, db: &mut Db) -> Result<bool> {
    let deployed = flow_version::get(db, &flow.id, flow.version).await?;
    let Some(deployed) = deployed.filter(|_| !flow.draft) else {
        return Ok(false);
    };
    let Some(running) = deployed_plan(app, db, &flow.environment_id, &flow.id).await? else {
        return Ok(false);
    };
    let names = EnvironmentNames::load(db, &flow.environment_id).await?;
    let definition = definition::stored(&app.sealer, flow)?;
    Ok(is_unchanged(flow, &definition, &deployed, running, &names))
}

/// Returns whether a deploy of `flow`, whose definition this is, would change nothing: `deployed`
/// is the version that runs, and `running` its plan.
pub(super) fn is_unchanged(
    flow: &Flow,
    definition: &Definition,
    deployed: &FlowVersion,
    running: FlowPlan,
    names: &EnvironmentNames,
) -> bool {
    let has_same_text = !flow.draft
        && deployed.yaml_config == flow.yaml_config
        && deployed.sealed_config == flow.sealed_config;
    has_same_text
        && kanat_flow::compile(definition, names, identity(flow))
            .is_ok_and(|plan| comparable(plan) == comparable(running))
}

/// A plan without what changes around a definition: its name, its tokens, whether it is paused,
/// what it was made from.
fn comparable(plan: FlowPlan) -> FlowPlan {
    let mut plan = FlowPlan {
        flow_name: String::new(),
        paused: false,
        made_from: None,
        ..plan
    };
    if let Some(trigger::Kind::Webhook(hook)) = plan
        .trigger
        .as_mut()
        .and_then(|trigger| trigger.kind.as_mut())
    {
        hook.tokens.clear();
    }
    plan
}

/// Publishes the running content of a flow once more, without a new version, and waits until it is
/// live, as every deploy does. Nodes that have refused it get it again. A paused flow is resumed if
/// `next` says so.
async fn republish_unchanged(
    call: &Call,
    id: &FlowId,
    next: fn(Status) -> Status,
) -> Result<ChangeResult<Deployment>> {
    let waiting = count_waiting(call, id).await?;
    let mut change = call.change().await?;
    let mut flow = call.existing(&mut change, id).await?;
    call.if_match.check(flow.revision)?;
    call.caller
        .record_idempotent_result(&mut change, id)
        .await?;
    let before = flow.clone();
    let held_messages = Some(waiting).filter(|_| flow.status == Status::Paused);
    let status = next(flow.status);
    if status != flow.status {
        flow.status = status;
        flow.updated_at = Timestamp::now();
        flow::update(&mut change, &mut flow).await?;
        change.mark_urgent();
    }
    publish_again(&mut change, &flow).await?;
    audit::updated(call, &mut change, &before, &flow).await?;
    change
        .commit(Deployment {
            flow,
            held_messages,
        })
        .await
}

/// Returns the number of messages of a flow that wait, which are those that it holds while it is
/// paused.
async fn count_waiting(call: &Call, id: &FlowId) -> Result<u64> {
    let filter = Filter {
        statuses: message::Status::WAITING.to_vec(),
        ..Filter::flow(call.caller.tenant(), id.clone())
    };
    Ok(call
        .app
        .log
        .list(
            &filter,
            Position::Page(Page {
                limit: 1,
                offset: 0,
            }),
        )
        .await?
        .total)
}

/// Compiles a definition, and checks that nodes of this build can run the plan.
fn compile(
    definition: &Definition,
    names: &EnvironmentNames,
    identity: Identity,
) -> Result<FlowPlan> {
    let plan = kanat_flow::compile(definition, names, identity)
        .map_err(|faults| definition::invalid("the definition cannot be compiled", &faults))?;
    match Program::compile(plan.clone()) {
        Ok(_) => Ok(plan),
        Err(error) => Err(Error::field("yamlConfig", error.to_string())),
    }
}

/// Returns the plan that nodes run of the flow; none when it is not deployed.
pub async fn deployed_plan(
    app: &App,
    db: &mut Db,
    environment: &EnvironmentId,
    id: &FlowId,
) -> Result<Option<FlowPlan>> {
    change::published(db, &app.sealer, environment, Kind::Flow, id.as_str()).await
}
