//! What puts a flow into service and changes how it serves: deploy, rollback, pause, resume. Each answers once it is
//! live.

use kanat_engine::Program;
use kanat_flow::definition::Trigger;
use kanat_flow::{Definition, Identity};
use kanat_model::flow::Status;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::{Code, Error, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{FlowPlan, trigger};
use kanat_store::flow::{self, Flow};
use kanat_store::flow_version::{self, FlowVersion};
use kanat_store::{Db, flow_use};

use super::names::EnvironmentNames;
use super::{definition, existing, identity, refuse_callers, uses, webhook};
use crate::app::{App, Caller, Change, Changed, IfMatch, change, name, schedule};

/// Puts the draft into service as a new version.
pub async fn deploy(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    summary: Option<String>,
    if_match: &IfMatch,
) -> Result<Changed<Flow>, Error> {
    let mut change = Change::begin(app, &caller.environment_id).await?;
    let mut flow = existing(change.db(), caller, id).await?;
    if_match.check(flow.revision)?;
    if let Some(summary) = summary {
        flow.change_summary = name::check_description("changeSummary", summary)?;
    }
    publish_draft(&mut change, app, caller, &mut flow).await?;
    change.commit(flow).await
}

/// Puts the definition of an earlier version into service, as a new version; it becomes the draft too.
pub async fn rollback(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    version: u32,
    if_match: &IfMatch,
) -> Result<Changed<Flow>, Error> {
    if version == 0 {
        return Err(Error::field("versionNumber", "is required, and begins at 1"));
    }
    let mut change = Change::begin(app, &caller.environment_id).await?;
    let mut flow = existing(change.db(), caller, id).await?;
    if_match.check(flow.revision)?;
    let former = flow_version::get(change.db(), id, version).await?;
    let former =
        former.ok_or_else(|| Error::new(Code::NotFound, format!("flow {:?} has no version {version}", flow.name)))?;
    flow.yaml_config = former.yaml_config;
    flow.change_summary = format!("rollback to version {version}");
    publish_draft(&mut change, app, caller, &mut flow).await?;
    change.commit(flow).await
}

/// Holds the flow's messages from now on.
pub async fn pause(app: &App, caller: &Caller, id: &FlowId, if_match: &IfMatch) -> Result<Changed<Flow>, Error> {
    set_status(app, caller, id, if_match, Status::pause).await
}

/// Runs what was held, and takes messages again.
pub async fn resume(app: &App, caller: &Caller, id: &FlowId, if_match: &IfMatch) -> Result<Changed<Flow>, Error> {
    set_status(app, caller, id, if_match, Status::resume).await
}

/// Publishes what changed around the deployed plan of `flow`: its name, its tokens, whether it is paused.
pub async fn publish_again(change: &mut Change<'_>, app: &App, flow: &Flow) -> Result<(), Error> {
    let found = deployed_plan(app, change.db(), &flow.environment_id, &flow.id).await?;
    let Some(mut plan) = found else { return Ok(()) };
    plan.flow_name = flow.name.clone();
    plan.paused = flow.status == Status::Paused;
    if let Some(trigger::Kind::Webhook(hook)) = plan.trigger.as_mut().and_then(|trigger| trigger.kind.as_mut()) {
        let tokens = webhook::tokens(app, change.db(), &mut flow.clone(), Timestamp::now()).await?;
        hook.tokens = tokens.iter().map(webhook::to_plan).collect();
    }
    change.put(Kind::Flow, flow.id.as_str(), &plan).await
}

async fn set_status(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    if_match: &IfMatch,
    next: fn(Status) -> Result<Status, Error>,
) -> Result<Changed<Flow>, Error> {
    let mut change = Change::begin(app, &caller.environment_id).await?;
    let mut flow = existing(change.db(), caller, id).await?;
    if_match.check(flow.revision)?;
    flow.status = next(flow.status)?;
    flow.updated_at = Timestamp::now();
    flow::update(change.db(), &mut flow).await?;
    publish_again(&mut change, app, &flow).await?;
    change.urgent();
    change.commit(flow).await
}

/// Everything that can be wrong is found before anything is written.
async fn publish_draft(change: &mut Change<'_>, app: &App, caller: &Caller, flow: &mut Flow) -> Result<(), Error> {
    let definition = definition::parse(&flow.yaml_config)?;
    let names = EnvironmentNames::load(change.db(), &caller.environment_id).await?;
    let missing = kanat_flow::check_names(&definition, &names);
    if !missing.is_empty() {
        return Err(definition::invalid("the definition names what does not exist", &missing));
    }
    if !matches!(definition.source.trigger, Trigger::Api) {
        refuse_callers(change.db(), flow, "its trigger stays api").await?;
    }
    let now = Timestamp::now();
    flow.status = flow.status.deploy();
    flow.version += 1;
    flow.trigger_kind = definition.source.trigger.as_str().to_owned();
    flow.updated_at = now;
    let mut identity = identity(flow);
    if flow.trigger_kind == webhook::TRIGGER {
        identity.webhook_tokens = webhook::tokens(app, change.db(), flow, now).await?;
    }
    let plan = compile(&definition, &names, identity)?;

    let version = FlowVersion {
        flow_id: flow.id.clone(),
        version: flow.version,
        yaml_config: flow.yaml_config.clone(),
        change_summary: flow.change_summary.clone(),
        created_at: now,
        created_by: caller.name.clone(),
    };
    flow_version::insert(change.db(), &version).await?;
    flow::update(change.db(), flow).await?;
    schedule::follow(change.db(), flow, &definition, now).await?;
    flow_use::replace(change.db(), &flow.id, &uses::resource_ids(&plan, &names)).await?;
    change.put(Kind::Flow, flow.id.as_str(), &plan).await
}

/// A plan that nodes of this build can run.
fn compile(definition: &Definition, names: &EnvironmentNames, identity: Identity) -> Result<FlowPlan, Error> {
    let plan = kanat_flow::compile(definition, names, identity)
        .map_err(|faults| definition::invalid("the definition cannot be compiled", &faults))?;
    match Program::compile(plan.clone()) {
        Ok(_) => Ok(plan),
        Err(error) => Err(Error::field("yamlConfig", error.to_string())),
    }
}

/// What nodes run of the flow; none when it is not deployed.
pub async fn deployed_plan(
    app: &App,
    db: &mut Db,
    environment: &EnvironmentId,
    id: &FlowId,
) -> Result<Option<FlowPlan>, Error> {
    change::published(db, &app.sealer, environment, Kind::Flow, id.as_str()).await
}
