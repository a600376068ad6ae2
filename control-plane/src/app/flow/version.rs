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
    let names = EnvironmentNames::load(&mut tx, &flow.environment_id).await?;
    drop(tx);
    let warnings = rollback_warnings(call, &found, &names).await;
    hide_secrets(&call.caller, &mut found);
    Ok((found, warnings.unwrap_or_default()))
}

/// Returns the warnings of a rollback to a version; `None` where its plan or its definition cannot
/// be read. A version without messages may have no plan in the log.
async fn rollback_warnings(
    call: &Call,
    version: &FlowVersion,
    names: &EnvironmentNames,
) -> Option<Vec<Diagnostic>> {
    let FlowVersion {
        flow_id,
        version: number,
        ..
    } = version;
    let sealer = &call.app.sealer;
    let body = call.app.log.plan(flow_id, *number).await.ok().flatten()?;
    let plan = saved::decode(flow_id.as_str(), *number, body, Some(sealer)).ok()?;
    let definition = definition::stored(sealer, version).ok()?;
    Some(fields::moved_instances(&definition, &plan, names))
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
