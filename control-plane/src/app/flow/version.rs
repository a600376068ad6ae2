//! Deployed versions of flows.

use kanat_auth::Role;
use kanat_flow::Diagnostic;
use kanat_model::id::FlowId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error, Result};
use kanat_plan_stream::saved;
use kanat_store::Db;
use kanat_store::flow::Flow;
use kanat_store::flow_version::{self, FlowVersion};

use super::names::EnvironmentNames;
use super::{definition, fields};
use crate::app::{Call, Caller};

/// The flow's versions, newest first.
pub async fn list(call: &Call, id: &FlowId, page: Page) -> Result<ListPage<FlowVersion>> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    let mut found = flow_version::list(&mut tx, id, page).await?;
    found
        .items
        .iter_mut()
        .for_each(|version| hide_secrets(&call.caller, version));
    Ok(found)
}

/// One version with its definition, and the warnings of a rollback to it.
pub async fn get(call: &Call, id: &FlowId, version: u32) -> Result<(FlowVersion, Vec<Diagnostic>)> {
    let mut tx = call.read().await?;
    let flow = call.existing(&mut tx, id).await?;
    let mut found = existing(&mut tx, &flow, version).await?;
    let definition = definition::stored(&call.app.sealer, &found)?;
    let names = EnvironmentNames::load(&mut tx, &flow.environment_id).await?;
    hide_secrets(&call.caller, &mut found);
    // A version without messages may have no plan in the log, and is not warned of.
    let body = call.app.log.plan(id, version).await.ok().flatten();
    let sealer = Some(&*call.app.sealer);
    let plan = body.and_then(|body| saved::decode(id.as_str(), version, body, sealer).ok());
    let warnings = plan.map(|plan| fields::moved_instances(&definition, &plan, &names));
    Ok((found, warnings.unwrap_or_default()))
}

/// Returns a version of a flow.
pub async fn existing(db: &mut Db, flow: &Flow, version: u32) -> Result<FlowVersion> {
    let found = flow_version::get(db, &flow.id, version).await?;
    found.ok_or_else(|| {
        let message = format!("flow {:?} has no version {version}", flow.name);
        Error::new(Code::NotFound, message).with_resource("flow", &flow.name)
    })
}

/// Leaves a viewer the definition with its secrets masked.
fn hide_secrets(caller: &Caller, version: &mut FlowVersion) {
    if caller.role == Role::Viewer {
        version.sealed_config = None;
    }
}
