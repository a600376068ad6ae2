//! Warnings about a definition: names that the environment lacks, fields of connector instances
//! without a value, and secrets that it would expose.

use std::collections::BTreeSet;

use kanat_flow::fields::{
    configured_instances, exposed_secrets, replaced_headers, unset_fields, unusable_secrets,
};
use kanat_flow::{Definition, Diagnostic, Names, Severity, Step, check_names, literal_secrets};
use kanat_model::Result;
use kanat_model::id::InstanceId;
use kanat_plan_stream::Kind;
use kanat_proto::plan::v1::FlowPlan;
use kanat_store::flow_use::User;
use kanat_store::{Db, connector_instance, flow_use};

use super::names::EnvironmentNames;
use super::{definition, uses};
use crate::app::{Call, connector};

/// Returns all that is found in a definition, in order of place. What keeps it from being deployed
/// here is an error.
pub async fn findings(
    call: &Call,
    db: &mut Db,
    definition: &Definition,
    names: &EnvironmentNames,
) -> Result<Vec<Diagnostic>> {
    let missing = check_names(definition, names).into_iter();
    let missing = missing.map(|missing| Diagnostic {
        severity: Severity::Error,
        ..missing
    });
    let unset = unset(call, db, definition, names).await?;
    let others = unset
        .into_iter()
        .chain(exposed_secrets(definition, names))
        .chain(literal_secrets(definition))
        .chain(definition.warnings.iter().cloned());
    let mut found: Vec<Diagnostic> = missing.chain(others).collect();
    found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    Ok(found)
}

/// Returns all that is found in a definition that is kept as a draft, as warnings.
pub async fn warnings(
    call: &Call,
    db: &mut Db,
    definition: &Definition,
    names: &EnvironmentNames,
) -> Result<Vec<Diagnostic>> {
    let found = findings(call, db, definition, names).await?;
    Ok(found.into_iter().map(Diagnostic::into_warning).collect())
}

/// Refuses a definition that would show secrets of connectors to those who may read messages.
pub fn refuse_exposed(definition: &Definition, names: &EnvironmentNames) -> Result<()> {
    let exposed = exposed_secrets(definition, names);
    if exposed.is_empty() {
        Ok(())
    } else {
        Err(definition::invalid(
            "the definition would show a secret",
            &exposed,
        ))
    }
}

/// Returns a warning for each secret that the version shows which runs, besides a draft with
/// another definition.
pub fn exposed_by_version(
    version: u32,
    running: &Definition,
    names: &EnvironmentNames,
) -> Vec<Diagnostic> {
    let diagnostic = |exposed: Diagnostic| Diagnostic {
        severity: Severity::Warning,
        message: format!(
            "version {version}, which runs, has it otherwise: {}",
            exposed.message
        ),
        ..exposed
    };
    exposed_secrets(running, names)
        .into_iter()
        .map(diagnostic)
        .collect()
}

/// Returns a warning for each name by which a version calls an instance, and by which a deploy
/// would call another one. `plan` is the plan of that version.
pub fn moved_instances(
    version: &Definition,
    plan: &FlowPlan,
    names: &EnvironmentNames,
) -> Vec<Diagnostic> {
    let called = uses::instances(plan);
    let is_moved = |name: &&str| {
        let found = names.instance(name);
        found.is_some_and(|found| !called.contains(found.id.as_str()))
    };
    let moved: BTreeSet<&str> = version.instances().filter(is_moved).collect();
    let version = plan.version;
    let warning = |name: &str| Diagnostic {
        severity: Severity::Warning,
        message: format!(
            "the connector {name:?} is another instance than version {version} calls: a deploy \
             goes over to it"
        ),
        path: String::new(),
        line: 1,
        column: 1,
    };
    moved.into_iter().map(warning).collect()
}

/// Returns a warning for each step that seems to have another name than in the version that runs:
/// outputs are kept by the names of steps.
pub fn renamed_steps(running: &Definition, draft: &Definition) -> Vec<Diagnostic> {
    let is_in = |definition: &Definition, step: &Step| {
        definition.steps.iter().any(|other| other.name == step.name)
    };
    let calls_alike = |step: &Step, other: &Step| {
        let connector = |step: &Step| step.connector.as_ref().map(|found| found.name.clone());
        step.action.name == other.action.name && connector(step) == connector(other)
    };
    let mut former = running.steps.iter().filter(|step| !is_in(draft, step));
    let added = draft.steps.iter().filter(|step| !is_in(running, step));
    let renamed =
        added.filter_map(|step| Some((step, former.find(|other| calls_alike(step, other))?)));
    let warning = |(step, former): (&Step, &Step)| Diagnostic {
        severity: Severity::Warning,
        message: format!(
            "the step {:?} of the version that runs seems to be {:?} here: a message that has run \
             it and is retried after a deploy runs it again",
            former.name, step.name
        ),
        path: String::new(),
        line: 1,
        column: 1,
    };
    renamed.map(warning).collect()
}

/// Returns all that keeps a definition from being deployed here, in order of place.
pub async fn faults(
    call: &Call,
    db: &mut Db,
    definition: &Definition,
    names: &EnvironmentNames,
) -> Result<Vec<Diagnostic>> {
    let mut found = findings(call, db, definition, names).await?;
    found.retain(|found| found.severity == Severity::Error);
    Ok(found)
}

/// Returns what of deployed flows keeps webhooks out that an instance is to verify, as it now is; a
/// flow's name is in each.
pub async fn shut_out(call: &Call, instance: &InstanceId) -> Result<Vec<String>> {
    let mut tx = call.read().await?;
    let users =
        flow_use::definitions(&mut tx, &Kind::ConnectorInstance.resource_id(instance)).await?;
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    let mut found = Vec::new();
    for user in users {
        let unset = unset(
            call,
            &mut tx,
            &definition::stored(&call.app.sealer, &user)?,
            &names,
        )
        .await?;
        let flow = user.name;
        let errors = unset
            .into_iter()
            .filter(|unset| unset.severity == Severity::Error);
        found.extend(errors.map(|error| {
            format!(
                "flow {flow:?} is live, and in its {} {}",
                error.path, error.message
            )
        }));
    }
    Ok(found)
}

/// Returns a warning where deployed flows use an instance under a name that it no longer has: their
/// next deploy would not find it, or another one.
pub async fn misnamed(call: &Call, instance: &InstanceId) -> Result<Option<String>> {
    let mut tx = call.read().await?;
    let Some(found) =
        connector_instance::get(&mut tx, &call.caller.environment_id, instance).await?
    else {
        return Ok(None);
    };
    let users =
        flow_use::definitions(&mut tx, &Kind::ConnectorInstance.resource_id(instance)).await?;
    let names = EnvironmentNames::load(&mut tx, &call.caller.environment_id).await?;
    let misses = |user: &&User| {
        let definition = definition::stored(&call.app.sealer, *user);
        definition.is_ok_and(|definition| {
            definition.instances().all(|name| {
                names
                    .instance(name)
                    .is_none_or(|named| named.id != found.id.as_str())
            })
        })
    };
    let flows: Vec<&str> = users
        .iter()
        .filter(misses)
        .map(|user| user.name.as_str())
        .collect();
    Ok((!flows.is_empty()).then(|| {
        format!(
            "flows that run call it by a former name, and go on until their next deploy: change \
             their definitions to {:?}: {}",
            found.name,
            flows.join(", ")
        )
    }))
}

/// Returns what the definition says in vain beside the configs of its instances: fields that they
/// do not hold, or hold for nothing, and headers that they replace. Only configs that matter are
/// opened.
async fn unset(
    call: &Call,
    db: &mut Db,
    definition: &Definition,
    names: &EnvironmentNames,
) -> Result<Vec<Diagnostic>> {
    let mut instances = Vec::new();
    for id in configured_instances(definition, names) {
        instances.extend(connector::instance(call, db, &InstanceId::new(id)).await?);
    }
    let holds = |id: &str, field: &str| {
        instances
            .iter()
            .find(|instance| instance.id() == id)
            .is_none_or(|instance| instance.holds(field))
    };
    let text = |id: &str, field: &str| {
        instances
            .iter()
            .find(|instance| instance.id() == id)?
            .text(field)
    };
    let mut faults = unset_fields(definition, names, &holds);
    faults.extend(unusable_secrets(definition, names, &text));
    let replaces = |id: &str, header: &str| {
        let mut instances = instances.iter();
        instances.any(|instance| instance.id() == id && instance.replaces_header(header))
    };
    faults.extend(replaced_headers(definition, names, &replaces));
    Ok(faults)
}
