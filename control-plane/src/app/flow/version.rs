//! Deployed versions of flows.

use kanat_auth::Role;
use kanat_model::id::FlowId;
use kanat_model::page::{ListPage, Page};
use kanat_model::{Code, Error};
use kanat_store::flow_version::{self, FlowVersion};

use super::existing;
use crate::app::{App, Caller};

/// The flow's versions, newest first.
pub async fn list(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    page: Page,
) -> Result<ListPage<FlowVersion>, Error> {
    let mut tx = app.store.read().await?;
    existing(&mut tx, caller, id).await?;
    let mut found = flow_version::list(&mut tx, id, page).await?;
    found
        .items
        .iter_mut()
        .for_each(|version| hide_secrets(caller, version));
    Ok(found)
}

/// One version with its definition.
pub async fn get(
    app: &App,
    caller: &Caller,
    id: &FlowId,
    version: u32,
) -> Result<FlowVersion, Error> {
    let mut tx = app.store.read().await?;
    let flow = existing(&mut tx, caller, id).await?;
    let mut found = flow_version::get(&mut tx, id, version).await?;
    found
        .iter_mut()
        .for_each(|version| hide_secrets(caller, version));
    found.ok_or_else(|| {
        Error::new(
            Code::NotFound,
            format!("flow {:?} has no version {version}", flow.name),
        )
        .with_resource("flow", &flow.name)
    })
}

/// Leaves a viewer the definition with its secrets masked.
fn hide_secrets(caller: &Caller, version: &mut FlowVersion) {
    if caller.role == Role::Viewer {
        version.sealed_config = None;
    }
}
