//! Use-cases of flows. A draft may name what does not exist yet; a deployed version may not.

mod answer_fields;
mod calling_apis;
pub(super) mod definition;
mod deploy;
mod diff;
mod end;
mod fields;
mod keys;
mod names;
mod poll;
mod run;
mod running;
mod samples;
mod start;
mod test;
pub mod uses;
mod version;
pub(super) mod webhook;

use kanat_auth::Role;
use kanat_flow::fields::exposed_secrets;
use kanat_flow::graph::{self, Graph};
use kanat_flow::{Definition, Diagnostic, Identity, ResponseScope};
use kanat_model::flow::Status;
use kanat_model::id::FlowId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::flow::{self, Filter, Flow};
use kanat_store::{Db, flow_use, flow_version, schedule};

use crate::app::{App, Call, Caller, ChangeResult, audit, change, name, resource};
pub use answer_fields::{AnswerFields, quoted};
pub use calling_apis::response_texts;
pub use definition::{seal_all as seal_definitions, text as definition_text};
pub use deploy::{
    Deploy, DeployQueues, Deployment, Rollback, deploy, deployed_plan, pause, resume, rollback,
};
pub use diff::{Edition, diff};
pub use fields::{misnamed, shut_out};
pub use keys::{MessageKeys, PlanKeys};
pub use names::EnvironmentNames;
pub use poll::{forget_deleted_polls, polls};
pub use run::run;
pub use running::log_exposed_secrets;
pub use samples::Samples;
pub use start::{
    Start, StartedMessage, append, max_attempts, placement, prepare, save_plan, start,
};
pub use test::{Sample, TestResult, test};
pub use version::{get as get_version, list as list_versions};
pub use webhook::{rotate as rotate_webhook_token, url as webhook_url};

resource!("flow", FlowId, Flow, flow::get, environment_id, revision);

/// A flow to be made.
#[derive(Debug)]
pub struct NewFlow {
    /// The definition's name when left out.
    pub name: Option<String>,
    /// The definition's description when left out.
    pub description: Option<String>,
    pub yaml_config: String,
}

/// Fields that an update changes; a field that is left out stays.
#[derive(Debug, Default)]
pub struct Update {
    pub name: Option<String>,
    pub description: Option<String>,
    pub yaml_config: Option<String>,
    /// `paused` pauses and `active` resumes.
    pub status: Option<String>,
    pub change_summary: Option<String>,
}

/// A flow with what its definition comes to.
#[derive(Debug)]
pub struct Details {
    pub flow: Flow,
    /// The definition as a JSON tree.
    pub config: String,
    /// The compiled plan that runs as JSON; before the first deploy that of the draft, when it
    /// compiles.
    pub plan: Option<String>,
    /// Names that do not exist yet.
    pub warnings: Vec<Diagnostic>,
}

/// Errors and warnings of a definition.
#[derive(Debug, Default)]
pub struct DefinitionReport {
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
}

/// Makes a draft.
pub async fn create(call: &Call, new: NewFlow) -> Result<Details> {
    let definition = definition::parse_sent(&new.yaml_config).await?;
    let now = Timestamp::now();
    let mut flow = Flow {
        id: FlowId::generate(),
        account_id: call.caller.account_id.clone(),
        environment_id: call.caller.environment_id.clone(),
        name: name::check("name", new.name.as_deref().unwrap_or(&definition.name))?,
        description: name::check_text(
            "description",
            new.description
                .unwrap_or_else(|| definition.description.clone()),
        )?,
        status: Status::Draft,
        version: 0,
        trigger_kind: definition.source.trigger.as_str().to_owned(),
        yaml_config: String::new(),
        sealed_config: None,
        change_summary: String::new(),
        draft: true,
        webhook_token: None,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    definition::keep(&call.app.sealer, &mut flow, new.yaml_config, &definition);
    webhook::give_token(&call.app, &mut flow);
    let mut tx = call.write().await?;
    change::lock(&mut tx, &call.caller.environment_id).await?;
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    if let Some(made) = call.made::<FlowId>(&mut tx).await? {
        return details(call, &mut tx, made, &names).await;
    }
    fields::refuse_exposed(&definition, &names)?;
    flow::insert(&mut tx, &flow).await?;
    audit::created(call, &mut tx, &flow).await?;
    call.caller
        .record_idempotent_result(&mut tx, &flow.id)
        .await?;
    let warnings = fields::warnings(call, &mut tx, &definition, &names).await?;
    tx.commit().await?;
    Ok(details_of(flow, &definition, &names, warnings, None))
}

/// The environment's flows, newest first.
pub async fn list(call: &Call, filter: &Filter, page: Page) -> Result<ListPage<Flow>> {
    let mut tx = call.read().await?;
    let mut found = flow::list(&mut tx, &call.caller.environment_id, filter, page).await?;
    found
        .items
        .iter_mut()
        .for_each(|flow| hide_secrets(&call.caller, flow));
    Ok(found)
}

/// One flow with what its definition comes to.
pub async fn get(call: &Call, id: &FlowId) -> Result<Details> {
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    let mut found = details(call, &mut tx, flow, &names).await?;
    hide_secrets(&call.caller, &mut found.flow);
    Ok(found)
}

/// Leaves a viewer the definition with its secrets masked.
fn hide_secrets(caller: &Caller, flow: &mut Flow) {
    if caller.role == Role::Viewer {
        flow.sealed_config = None;
    }
}

/// Changes what the update names. What is deployed stays as it is, but for its name and whether it
/// is paused.
pub async fn update(call: &Call, id: &FlowId, update: Update) -> Result<ChangeResult<Details>> {
    let mut change = call.change().await?;
    let (mut flow, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        let names = EnvironmentNames::load(&mut change, &call.caller.environment_id).await?;
        let details = details(call, &mut change, flow, &names).await?;
        return change.answer_repeat(details).await;
    }
    let before = flow.clone();
    if let Some(name) = &update.name {
        flow.name = name::check("name", name)?;
    }
    let is_described = update.description.is_some();
    if let Some(description) = update.description {
        flow.description = name::check_text("description", description)?;
    }
    let names = EnvironmentNames::load(&mut change, &call.caller.environment_id).await?;
    let is_new = |yaml: &str, flow: &Flow| -> Result<bool> {
        Ok(yaml != flow.yaml_config && yaml != definition::text(&call.app.sealer, flow)?)
    };
    if let Some(yaml_config) = update.yaml_config
        && is_new(&yaml_config, &flow)?
    {
        let definition = definition::parse_sent(&yaml_config).await?;
        fields::refuse_exposed(&definition, &names)?;
        if !is_described && definition::describes(&call.app.sealer, &before) {
            let description = definition.description.clone();
            flow.description = name::check_text("description", description)?;
        }
        let deployed = flow_version::get(&mut change, id, flow.version).await?;
        let running = deployed
            .as_ref()
            .map(|deployed| definition::text(&call.app.sealer, deployed))
            .transpose()?;
        flow.draft = running.is_none_or(|running| running != yaml_config);
        match deployed.filter(|_| !flow.draft) {
            Some(deployed) => {
                flow.yaml_config = deployed.yaml_config;
                flow.sealed_config = deployed.sealed_config;
            }
            None => definition::keep(&call.app.sealer, &mut flow, yaml_config, &definition),
        }
        if flow.version == 0 {
            flow.trigger_kind = definition.source.trigger.as_str().to_owned();
            webhook::give_token(&call.app, &mut flow);
        }
    }
    if flow.description != before.description && flow.sealed_config.is_some() {
        let definition = definition::stored(&call.app.sealer, &flow)?;
        flow.description = kanat_flow::text_without_secrets(&definition, &flow.description);
    }
    if let Some(summary) = update.change_summary {
        flow.change_summary = name::check_text("changeSummary", summary)?;
    }
    if let Some(status) = &update.status {
        flow.status = asked_status(flow.status, status)?;
    }
    if flow != before {
        flow.updated_at = Timestamp::now();
        flow::update(&mut change, &mut flow).await?;
    }
    audit::updated(call, &mut change, &before, &flow).await?;
    if flow.status != before.status {
        change.mark_urgent();
    }
    if flow.version > 0 && (&flow.name, flow.status) != (&before.name, before.status) {
        deploy::publish_again(&mut change, &flow).await?;
    }
    let details = details(call, &mut change, flow, &names).await?;
    change.commit(details).await
}

/// Takes a flow out of service, and ends its messages that wait. What has ended stays, and so do
/// its versions.
pub async fn delete(call: &Call, id: &FlowId) -> Result<ChangeResult<()>> {
    let mut change = call.change().await?;
    let Some(flow) = call
        .load_for_change_unless_repeated(&mut change, id)
        .await?
    else {
        let changed = change.answer_repeat(()).await?;
        end::end_messages(&call.app, id).await?;
        return Ok(changed);
    };
    calling_apis::refuse(&mut change, &flow, "it stays").await?;
    audit::deleted(call, &mut change, &flow).await?;
    flow::delete(
        &mut change,
        &call.caller.environment_id,
        id,
        Timestamp::now(),
    )
    .await?;
    if flow.version > 0 {
        flow_use::replace(&mut change, id, flow.version, &[]).await?;
        schedule::delete_of_flow(&mut change, id).await?;
        change.remove(Kind::Flow, id).await?;
        change.mark_urgent();
        if let Some(version) = change.version().await? {
            end::mark(&call.app, id, version).await?;
        }
        kanat_failpoint::hit("flow.marked");
    }
    let changed = change.commit(()).await?;
    if flow.version > 0 {
        end::end_messages(&call.app, id).await?;
    }
    Ok(changed)
}

/// Checks a definition without keeping it.
pub async fn validate(call: &Call, yaml_config: &str) -> Result<DefinitionReport> {
    match definition::check_sent(yaml_config).await {
        Err(errors) => Ok(DefinitionReport {
            errors,
            warnings: Vec::new(),
        }),
        Ok(definition) => {
            let mut tx = call.read().await?;
            let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
            let errors = exposed_secrets(&definition, &names);
            let mut warnings = fields::findings(call, &mut tx, &definition, &names).await?;
            warnings.retain(|warning| !errors.iter().any(|error| error.message == warning.message));
            let environment = &call.caller.environment_id;
            if let Some(flow) = flow::find(&mut tx, environment, &definition.name).await? {
                warnings.extend(calling_apis::findings(&mut tx, &flow.id, &definition).await?);
            }
            Ok(DefinitionReport { errors, warnings })
        }
    }
}

/// Returns the graph of what runs, or of another edition. A flow that was never deployed has its
/// draft alone. With it are the variables that it reads, as they now are.
pub async fn plan_graph(
    call: &Call,
    id: &FlowId,
    edition: Option<Edition>,
) -> Result<(Graph, Vec<(String, String)>)> {
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    let running = if flow.version == 0 {
        Edition::Draft
    } else {
        Edition::Version(flow.version)
    };
    let definition = edition
        .unwrap_or(running)
        .definition(&call.app, &mut tx, &flow)
        .await?;
    let names = EnvironmentNames::load(&mut tx, &flow.environment_id).await?;
    let variable = |name: &str| Some((name.to_owned(), names.variables().get(name)?.clone()));
    let variables = definition.variables().into_iter().filter_map(variable);
    Ok((graph::of(&definition), variables.collect()))
}

/// Returns what the response of an API can read of the draft and of what runs: a response may be
/// changed before the flow is deployed, and after it.
pub async fn response_scope(app: &App, db: &mut Db, flow: &Flow) -> Result<ResponseScope> {
    let mut scope = ResponseScope::from(&definition::stored(&app.sealer, flow)?);
    if let Some(plan) = deployed_plan(app, db, &flow.environment_id, &flow.id).await? {
        scope.has_target |= plan.target.is_some();
        scope
            .steps
            .extend(plan.steps.into_iter().map(|step| step.name));
    }
    Ok(scope)
}

async fn details(
    call: &Call,
    db: &mut Db,
    flow: Flow,
    names: &EnvironmentNames,
) -> Result<Details> {
    let definition = definition::stored(&call.app.sealer, &flow)?;
    let mut warnings = fields::findings(call, db, &definition, names).await?;
    warnings.extend(calling_apis::findings(db, &flow.id, &definition).await?);
    let plan = deployed_plan(&call.app, db, &flow.environment_id, &flow.id).await?;
    if let Some(deployed) = flow_version::get(db, &flow.id, flow.version).await? {
        // What runs already is deployed again, whatever has changed around it.
        if let Some(plan) = plan.clone()
            && deploy::is_unchanged(&flow, &definition, &deployed, plan, names)
        {
            warnings = warnings.into_iter().map(Diagnostic::into_warning).collect();
        }
        let running = definition::stored(&call.app.sealer, &deployed)?;
        if flow.draft {
            warnings.extend(fields::exposed_by_version(flow.version, &running, names));
            warnings.extend(fields::renamed_steps(&running, &definition));
        }
        if let Some(plan) = &plan {
            warnings.extend(fields::moved_instances(&running, plan, names));
        }
    }
    Ok(details_of(flow, &definition, names, warnings, plan))
}

fn details_of(
    flow: Flow,
    definition: &Definition,
    names: &EnvironmentNames,
    warnings: Vec<Diagnostic>,
    running: Option<FlowPlan>,
) -> Details {
    let plan = running.or_else(|| kanat_flow::compile(definition, names, identity(&flow)).ok());
    let mut warnings = warnings;
    warnings.extend(kanat_flow::check_flow_name(definition, &flow.name));
    Details {
        config: kanat_flow::config_json(definition),
        plan: plan.as_ref().map(kanat_flow::plan_json),
        warnings,
        flow,
    }
}

/// Returns the identity of a flow in its plan, without webhook tokens.
fn identity(flow: &Flow) -> Identity {
    Identity {
        flow_id: flow.id.to_string(),
        flow_name: flow.name.clone(),
        account_id: flow.account_id.to_string(),
        environment_id: flow.environment_id.to_string(),
        version: flow.version,
        webhook_tokens: Vec::new(),
        paused: flow.status == Status::Paused,
    }
}

/// The status that an update leads to; the one that the flow has already changes nothing.
fn asked_status(now: Status, text: &str) -> Result<Status> {
    let asked = Status::parse(text).ok_or_else(|| {
        Error::field("status", format!("{text:?} is no status: paused or active"))
    })?;
    match (now, asked) {
        (Status::Draft, Status::Draft)
        | (Status::Active, Status::Active)
        | (Status::Paused, Status::Paused) => Ok(now),
        (Status::Draft, Status::Active) => Err(Error::precondition(
            "a flow that is draft becomes active by a deploy",
        )),
        (Status::Draft | Status::Active, Status::Paused) => now.pause(),
        (Status::Paused, Status::Active) => now.resume(),
        (Status::Active | Status::Paused, Status::Draft) => Err(Error::precondition(
            "a flow that was deployed cannot become a draft again",
        )),
    }
}
