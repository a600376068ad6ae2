//! Connectors between the wire, the catalog and the store.

use kanat_catalog::shape::{Change, Shape};
use kanat_catalog::{Action, ConfigField, Entry, RateLimit};
use kanat_model::id::InstanceId;
use kanat_model::{Error, Result};
use kanat_model::{Health, Timestamp, saturated};
use kanat_proto::v1 as wire;
use kanat_store::connector_health::{ConnectorHealth, HealthChange};
use kanat_store::connector_instance::ConnectorInstance;
use kanat_store::endpoint_schema::EndpointSchema;

use crate::app::connector::oauth::{AuthorizationStart, Callback, TokenStatus};
use crate::app::connector::schemas::EndpointCheck;
use crate::app::connector::{self, Config, InstanceView, NewInstance, TestResult, Update};
use crate::app::{App, etag};
use crate::carry::carry;
use crate::grpc::clear;

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
        config_schema: Some(wire::Json {
            text: entry.config_schema.clone(),
        }),
        rate_limit: entry.rate_limit.map(rate_limit),
        documentation: entry.documentation.clone(),
    }
}

fn rate_limit(
    RateLimit {
        requests,
        seconds,
        concurrency,
    }: RateLimit,
) -> wire::RateLimit {
    wire::RateLimit {
        requests,
        seconds,
        concurrency,
    }
}

pub fn action(action: &Action) -> wire::CatalogAction {
    wire::CatalogAction {
        slug: action.slug.clone(),
        name: action.name.clone(),
        description: action.description.clone(),
        method: action.method.clone(),
        path: action.path.clone(),
        request_schema: Some(wire::Json {
            text: action.request_schema.clone(),
        }),
        response_schema: Some(wire::Json {
            text: action.response_schema.clone(),
        }),
    }
}

pub fn new(request: wire::CreateConnectorInstanceRequest) -> Result<NewInstance> {
    Ok(NewInstance {
        catalog_id: request.catalog_id,
        name: request.name,
        display_name: request.display_name,
        config: request.config.map(config).transpose()?.unwrap_or_default(),
    })
}

pub fn update(mut request: wire::UpdateConnectorInstanceRequest) -> Result<(InstanceId, Update)> {
    clear::texts(
        &request.clear,
        [("display_name", &mut request.display_name)],
    )?;
    let update = Update {
        name: request.name,
        display_name: request.display_name,
        config: request.config.map(config).transpose()?,
    };
    Ok((request.id.into(), update))
}

/// An instance with its secrets masked, and how it does.
pub fn instance(app: &App, seen: InstanceView) -> Result<wire::ConnectorInstance> {
    let InstanceView {
        instance,
        health,
        authorization,
        warnings,
    } = seen;
    let config = connector::redacted(app, &instance)?;
    Ok(carry!(
        wire::ConnectorInstance, instance { catalog_id, name, display_name }
        text { id, created_at, updated_at, environment_id }
        with {
            etag: etag(&instance),
            config: Some(wire::Json { text: config }),
            last_error: health.as_ref().and_then(last_error),
            health: Some(self::health(health.as_ref())),
            authorization: authorization.map(self::authorization),
            warnings,
        }
    ))
}

fn health(known: Option<&ConnectorHealth>) -> wire::ConnectorHealth {
    let unknown = || wire::ConnectorHealth {
        status: Health::Unknown.to_string(),
        ..Default::default()
    };
    known.map_or_else(unknown, |known| wire::ConnectorHealth {
        status: known.status.clone(),
        reason: known.reason.clone(),
        since: Some(known.since.to_string()),
    })
}

/// Returns the reason for which the instance is not healthy; none while it is.
fn last_error(known: &ConnectorHealth) -> Option<wire::LastError> {
    let ails = match Health::parse(&known.status).unwrap_or_default() {
        Health::Degraded | Health::Failing => true,
        Health::Unknown | Health::Healthy => false,
    };
    ails.then(|| wire::LastError {
        at: known.updated_at.to_string(),
        message: known.reason.clone(),
    })
}

fn authorization(held: TokenStatus) -> wire::Authorization {
    wire::Authorization {
        status: held.status.to_owned(),
        expires_at: held.expires_at.map(|at| at.to_string()),
        error: held.error,
    }
}

pub fn health_and_changes(
    known: Option<&ConnectorHealth>,
    (data, pagination): (Vec<wire::HealthChange>, Option<wire::Pagination>),
) -> wire::GetConnectorHealthResponse {
    let wire::ConnectorHealth {
        status,
        reason,
        since,
    } = health(known);
    wire::GetConnectorHealthResponse {
        status,
        reason,
        since,
        data,
        pagination,
    }
}

pub fn health_change(change: HealthChange) -> wire::HealthChange {
    carry!(
        wire::HealthChange, change { previous, status, reason }
        text { id, at }
    )
}

pub fn endpoint_schema((row, shape): (EndpointSchema, Shape)) -> wire::EndpointSchema {
    carry!(
        wire::EndpointSchema, row { endpoint }
        text { first_seen_at, last_seen_at }
        optional { checked_at }
        with {
            schema: Some(wire::Json {
                text: shape.to_schema().to_string(),
            }),
            samples: saturated(row.samples),
        }
    )
}

pub fn checked(at: Timestamp, found: Vec<EndpointCheck>) -> wire::CheckEndpointSchemasResponse {
    wire::CheckEndpointSchemasResponse {
        checked_at: at.to_string(),
        changed: found.iter().any(|endpoint| !endpoint.changes.is_empty()),
        data: found.into_iter().map(schema_check).collect(),
    }
}

fn schema_check(found: EndpointCheck) -> wire::SchemaCheck {
    let status = match (found.changes.is_empty(), found.seen) {
        (false, _) => "changed",
        (true, true) => "unchanged",
        (true, false) => "unseen",
    };
    let changes = found.changes.into_iter().map(schema_change).collect();
    wire::SchemaCheck {
        endpoint: found.endpoint,
        status: status.to_owned(),
        changes,
        error: found.error,
    }
}

fn schema_change(change: Change) -> wire::SchemaChange {
    let (kind, path, from, to) = match change {
        Change::Added { path, to } => ("added", path, None, Some(to)),
        Change::Removed { path, from } => ("removed", path, Some(from), None),
        Change::TypeChanged { path, from, to } => ("type_changed", path, Some(from), Some(to)),
    };
    wire::SchemaChange {
        kind: kind.to_owned(),
        path,
        from,
        to,
    }
}

pub fn started(started: AuthorizationStart) -> wire::StartOAuthResponse {
    wire::StartOAuthResponse {
        authorization_url: started.authorization_url.into(),
        state: started.state,
        instance_id: started.instance.id.into_string(),
        redirect_uri: started.redirect_uri,
        expires_at: started.expires_at.to_string(),
    }
}

pub fn callback(request: wire::CompleteOAuthRequest) -> Callback {
    carry!(
        Callback,
        request {
            state,
            code,
            error,
            error_description
        }
    )
}

pub fn completed(
    (instance, held): (ConnectorInstance, TokenStatus),
) -> wire::CompleteOAuthResponse {
    wire::CompleteOAuthResponse {
        instance_id: instance.id.into_string(),
        name: instance.name,
        status: held.status.to_owned(),
        expires_at: held.expires_at.map(|at| at.to_string()),
    }
}

/// Returns which of the credentials that a call gave to an instance are kept and never sent.
pub fn unsent(given: &Config, instance: &wire::ConnectorInstance) -> Vec<String> {
    let config = instance
        .config
        .as_ref()
        .and_then(|config| serde_json::from_str(&config.text).ok());
    let entry = kanat_catalog::entry(&instance.catalog_id);
    entry
        .zip(config)
        .map(|(entry, config)| entry.unsent(given, &config))
        .unwrap_or_default()
}

pub fn tested(tested: TestResult) -> wire::TestConnectorInstanceResponse {
    wire::TestConnectorInstanceResponse {
        ok: tested.ok,
        status: tested.status.map(u32::from),
        error: (!tested.ok).then(|| tested.message.clone()),
        message: tested.message,
        request: Some(wire::TestRequest {
            method: tested.request.method,
            url: tested.request.url,
            headers: tested.request.headers.into_iter().collect(),
        }),
        latency_ms: saturated(tested.latency.as_millis()),
    }
}

fn config(json: wire::Json) -> Result<Config> {
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
