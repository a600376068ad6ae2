//! Deployed versions of flows.

use kanat_model::id::FlowId;
use kanat_model::page::{Page, Paged};
use kanat_model::{Code, Error};
use kanat_store::flow_version::{self, FlowVersion};

use super::existing;
use crate::app::{App, Caller};

/// The flow's versions, newest first.
pub async fn list(app: &App, caller: &Caller, id: &FlowId, page: Page) -> Result<Paged<FlowVersion>, Error> {
    let mut tx = app.store.read().await?;
    existing(&mut tx, caller, id).await?;
    Ok(flow_version::list(&mut tx, id, page).await?)
}

/// One version with its definition.
pub async fn get(app: &App, caller: &Caller, id: &FlowId, version: u32) -> Result<FlowVersion, Error> {
    let mut tx = app.store.read().await?;
    let flow = existing(&mut tx, caller, id).await?;
    let found = flow_version::get(&mut tx, id, version).await?;
    found.ok_or_else(|| Error::new(Code::NotFound, format!("flow {:?} has no version {version}", flow.name)))
}
