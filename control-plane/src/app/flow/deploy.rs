//! What puts a flow into service and changes how it serves: deploy, rollback, pause, resume. Each answers once it is
//! live.

mod together;

use kanat_engine::Program;
use kanat_flow::{Definition, Identity};
use kanat_model::flow::Status;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::{Code, Error, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::{FlowPlan, trigger};
use kanat_store::flow::{self, Flow};
use kanat_store::{Db, Tx, flow_version};
use prost::Message;

use super::names::EnvironmentNames;
use super::{definition, existing, fields, identity, refuse_callers, uses, webhook};
use crate::app::{App, Caller, Change, Changed, IfMatch, change, name};
use crate::push::Applied;
pub use together::Deploys;
use together::{Ended, Ready};

/// How often a deploy is made anew because somebody has changed what it is made from. Of many that deploy one flow at the
/// same time, one gets on each time.
const TRIES: usize = 100;

/// What is put into service.
enum Asked {
    /// The draft, with another summary of what changed in it if there is one.
    Draft { summary: Option<String> },
    /// The definition of an earlier version.
    Version(u32),
}

/// Puts the draft into service as a new version.
pub async fn deploy(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    summary: Option<String>,
    if_match: &IfMatch,
) -> Result<Changed<Flow>, Error> {
    let summary = summary.map(|summary| name::check_description("changeSummary", summary)).transpose()?;
    put_into_service(app, caller, id, &Asked::Draft { summary }, if_match).await
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
    put_into_service(app, caller, id, &Asked::Version(version), if_match).await
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

/// Everything that can be wrong is found before anything is written. Made anew as long as others change what it is made from.
async fn put_into_service(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    asked: &Asked,
    if_match: &IfMatch,
) -> Result<Changed<Flow>, Error> {
    for _ in 0..TRIES {
        let mut tx = app.store.read().await?;
        let flow = existing(&mut tx, caller, id).await?;
        if_match.check(flow.revision)?;
        let flow = asked.of(flow, &mut tx).await?;
        let ready = ready(app, caller, flow, tx).await?;
        if let Ended::Done(flow, version) = app.deploys.take_turn(app, &caller.environment_id, ready).await? {
            let applied = match version {
                Some(version) => app.hub.applied(&caller.environment_id, &version).await,
                None => Applied::Everywhere,
            };
            return Ok(Changed { value: *flow, applied });
        }
    }
    Err(Error::new(Code::Aborted, "the flow, or what it names, is being changed by others: try again"))
}

impl Asked {
    /// The flow with the draft that is to be its next version.
    async fn of(&self, mut flow: Flow, db: &mut Db) -> Result<Flow, Error> {
        match self {
            Self::Draft { summary: None } => {}
            Self::Draft { summary: Some(summary) } => flow.change_summary.clone_from(summary),
            Self::Version(version) => {
                let former = flow_version::get(db, &flow.id, *version).await?;
                let missing = || Error::new(Code::NotFound, format!("flow {:?} has no version {version}", flow.name));
                flow.yaml_config = former.ok_or_else(missing)?.yaml_config;
                flow.change_summary = format!("rollback to version {version}");
            }
        }
        Ok(flow)
    }
}

/// All that a deploy comes to, found while others may change what it is made from: nobody waits for it.
async fn ready(app: &App, caller: &Caller, mut flow: Flow, mut tx: Tx) -> Result<Ready, Error> {
    let names = EnvironmentNames::load(&mut tx, &caller.environment_id).await?;
    let definition = definition::parse(&flow.yaml_config)?;
    let missing = fields::faults(app, &mut tx, caller, &definition, &names).await?;
    if !missing.is_empty() {
        return Err(definition::invalid("the definition does not fit the environment", &missing));
    }
    let now = Timestamp::now();
    flow.status = flow.status.deploy();
    flow.version += 1;
    flow.trigger_kind = definition.source.trigger.as_str().to_owned();
    flow.updated_at = now;
    let mut identity = identity(&flow);
    if flow.trigger_kind == webhook::TRIGGER {
        identity.webhook_tokens = webhook::tokens(app, &mut tx, &mut flow, now).await?;
    }
    drop(tx);
    let plan = compile(&definition, &names, identity)?;
    let resource_id = Kind::Flow.resource_id(flow.id.as_str());
    Ok(Ready {
        uses: uses::resource_ids(&plan, &names),
        resource: change::sealed(&app.sealer, &caller.environment_id, &resource_id, &plan.encode_to_vec()),
        deployed_by: caller.name.clone(),
        flow,
        definition,
        names,
    })
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
