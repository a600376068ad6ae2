//! Connectors between the wire, the catalog and the store.

use kanat_catalog::{Action, ConfigField, Entry};
use kanat_model::Error;
use kanat_model::id::InstanceId;
use kanat_proto::v1 as wire;
use kanat_store::connector_instance::ConnectorInstance;
use tonic::{Response, Status};

use crate::app::connector::{self, Config, New, Tested, Update};
use crate::app::{App, Changed, etag};
use crate::grpc::status;

pub fn entry(entry: &Entry) -> wire::CatalogEntry {
    wire::CatalogEntry {
        id: entry.id.clone(),
        name: entry.name.clone(),
        r#type: entry.kind.clone(),
        authentication: entry.authentication.clone(),
        category: entry.category.clone(),
        description: entry.description.clone(),
        config_fields: entry.fields.iter().map(field).collect(),
        actions: entry.actions.iter().map(action).collect(),
    }
}

pub fn action(action: &Action) -> wire::CatalogAction {
    wire::CatalogAction {
        slug: action.slug.clone(),
        name: action.name.clone(),
        description: action.description.clone(),
        method: action.method.clone(),
        path: action.path.clone(),
        request_schema: Some(wire::Json { text: action.request_schema.clone() }),
        response_schema: Some(wire::Json { text: action.response_schema.clone() }),
    }
}

pub fn new(request: wire::CreateConnectorInstanceRequest) -> Result<New, Error> {
    Ok(New {
        catalog_id: request.catalog_id,
        name: request.name,
        display_name: request.display_name,
        config: request.config.map(config).transpose()?.unwrap_or_default(),
    })
}

pub fn update(request: wire::UpdateConnectorInstanceRequest) -> Result<(InstanceId, Update), Error> {
    let config = request.config.map(config).transpose()?;
    Ok((request.id.into(), Update { name: request.name, display_name: request.display_name, config }))
}

/// An instance with its secrets masked.
pub fn instance(app: &App, instance: ConnectorInstance) -> Result<wire::ConnectorInstance, Error> {
    let config = connector::redacted(app, &instance)?;
    Ok(wire::ConnectorInstance {
        etag: etag(instance.revision),
        id: instance.id.into_string(),
        catalog_id: instance.catalog_id,
        name: instance.name,
        display_name: instance.display_name,
        config: Some(wire::Json { text: config }),
        created_at: instance.created_at.to_string(),
        updated_at: instance.updated_at.to_string(),
        environment_id: instance.environment_id.into_string(),
    })
}

pub fn changed(app: &App, made: Changed<ConnectorInstance>) -> Result<Response<wire::ConnectorInstance>, Status> {
    let shown = instance(app, made.value).map_err(status::of)?;
    Ok(super::super::changed(Changed { value: shown, applied: made.applied }, |shown| shown))
}

pub fn tested(tested: Tested) -> wire::TestConnectorInstanceResponse {
    wire::TestConnectorInstanceResponse {
        ok: tested.ok,
        status: tested.status.map(u32::from),
        message: tested.message,
        duration_ms: u32::try_from(tested.duration.as_millis()).unwrap_or(u32::MAX),
    }
}

fn config(json: wire::Json) -> Result<Config, Error> {
    serde_json::from_str(&json.text).map_err(|_| Error::field("config", "must be a JSON object"))
}

fn field(field: &ConfigField) -> wire::ConfigField {
    wire::ConfigField {
        name: field.name.clone(),
        r#type: field.kind.as_str().to_owned(),
        required: field.required,
        secret: field.secret,
        description: field.description.clone(),
        options: field.kind.options().to_vec(),
        default: field.default.clone(),
    }
}
