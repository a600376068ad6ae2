//! Resources as entries of the audit log show them: the fields of a read that somebody has given,
//! by their names in the API.

use std::time::Duration;

use kanat_model::published_api::{Cors, OAuth2, version_label};
use kanat_model::{Result, Timestamp};
use kanat_store::adapter::Adapter;
use kanat_store::api_key::ApiKey;
use kanat_store::batch_job::BatchJob;
use kanat_store::consumer_key::ConsumerKey;
use kanat_store::environment::Environment;
use kanat_store::flow::Flow;
use kanat_store::lookup_table::LookupTable;
use kanat_store::member::Member;
use kanat_store::policy::Policy;
use kanat_store::published_api::PublishedApi;
use kanat_store::published_api::version::Version;
use kanat_store::schedule::Schedule;
use serde_json::{Value, json};

use super::{Audited, Entity};
use crate::app::App;

/// Implements [`Audited`] for a row with an id and a name in an environment.
macro_rules! audited {
    ($($row:ty, $name:ident, |$this:ident, $app:ident| $state:expr;)*) => {$(
        impl Audited for $row {
            fn entity(&self) -> Entity {
                Entity::of(&self.environment_id, &self.id).named(&self.$name)
            }

            fn state(&self, $app: &App) -> Result<Value> {
                let $this = self;
                Ok($state)
            }
        }
    )*};
}

audited! {
    // The definition has its secrets masked.
    Flow, name, |flow, _app| json!({
        "id": flow.id, "name": flow.name, "description": flow.description,
        "environmentId": flow.environment_id, "status": flow.status.as_str(),
        "version": flow.version, "yamlConfig": flow.yaml_config,
        "changeSummary": flow.change_summary, "createdAt": text(flow.created_at),
    });

    LookupTable, name, |table, _app| json!({
        "id": table.id, "name": table.name, "description": table.description,
        "version": table.version, "entries_count": table.entries_count,
        "created_at": text(table.created_at),
    });

    Adapter, name, |adapter, _app| json!({
        "id": adapter.id, "name": adapter.name, "description": adapter.description,
        "type": adapter.kind.as_str(), "code": adapter.code, "version": adapter.version,
        "createdAt": text(adapter.created_at),
    });

    PublishedApi, name, |api, _app| json!({
        "id": api.id, "name": api.name, "description": api.description,
        "method": api.method.as_str(), "path": api.path, "authType": api.auth.as_str(),
        "oauth2": api.oauth2.as_ref().map(oauth2), "validationMode": api.validation.as_str(),
        "deadline": kanat_flow::duration::format(Duration::from_millis(api.deadline_ms)),
        "onTimeout": api.on_timeout.as_str(), "strictResponse": api.strict_response,
        "cors": api.cors.as_ref().map(cors), "environmentId": api.environment_id,
        "createdAt": text(api.created_at),
    });

    Schedule, flow_name, |schedule, _app| json!({
        "id": schedule.id, "flowId": schedule.flow_id, "flowName": schedule.flow_name,
        "cron_expression": schedule.cron_expression, "timezone": schedule.timezone,
        "enabled": schedule.enabled, "createdAt": text(schedule.created_at),
    });

    BatchJob, id, |job, _app| json!({
        "id": job.id, "flowId": job.flow_id, "status": job.status.as_str(),
        "total": job.total, "concurrency": job.concurrency, "retryOf": job.retry_of,
        "createdAt": text(job.created_at),
    });
}

impl Audited for Environment {
    fn entity(&self) -> Entity {
        Entity::of(&self.id, &self.id).named(&self.name)
    }

    fn state(&self, _: &App) -> Result<Value> {
        Ok(json!({
            "id": self.id, "name": self.name, "isDefault": self.is_default,
            "baseUrl": self.base_url, "protected": self.is_protected,
            "promoters": self.promoters.as_str(), "variables": self.variables,
            "retentionDays": self.retention_days, "createdAt": text(self.created_at),
        }))
    }
}

impl Audited for ApiKey {
    fn entity(&self) -> Entity {
        Entity {
            id: Some(self.id.to_string()),
            name: Some(self.name.clone()),
            environment_id: self.environment_id.clone(),
        }
    }

    fn state(&self, _: &App) -> Result<Value> {
        let created_by = self.created_by_type.as_ref().map(|kind| {
            json!({
                "type": kind.as_str(), "id": self.created_by_id, "name": self.created_by_name,
            })
        });
        Ok(json!({
            "id": self.id, "name": self.name, "role": self.role, "prefix": self.prefix,
            "createdBy": created_by,
            "environmentId": self.environment_id, "expiresAt": self.expires_at.map(text),
            "createdAt": text(self.created_at),
        }))
    }
}

impl Audited for Member {
    fn entity(&self) -> Entity {
        Entity {
            id: Some(self.id.to_string()),
            name: Some(self.title().to_owned()),
            environment_id: None,
        }
    }

    fn state(&self, _: &App) -> Result<Value> {
        let invited_by = self
            .inviter()
            .map(|(kind, id, name)| json!({ "type": kind.as_str(), "id": id, "name": name }));
        Ok(json!({
            "id": self.id, "email": self.email, "name": self.name, "role": self.role,
            "status": self.status().as_str(), "invitedBy": invited_by,
            "invitedAt": self.invited_at.map(text), "joinedAt": self.joined_at.map(text),
        }))
    }
}

impl Audited for Policy {
    fn entity(&self) -> Entity {
        Entity {
            id: Some(self.id.to_string()),
            name: Some(self.name.clone()),
            environment_id: None,
        }
    }

    fn state(&self, _: &App) -> Result<Value> {
        Ok(json!({
            "id": self.id, "name": self.name, "description": self.description,
            "severity": self.severity.as_str(), "expression": self.expression,
            "message": self.message, "environmentIds": self.environment_ids,
            "enabled": self.enabled, "createdAt": text(self.created_at),
        }))
    }
}

/// A consumer key with its API.
pub struct KeyOfApi<'a> {
    pub api: &'a PublishedApi,
    pub key: &'a ConsumerKey,
}

impl Audited for KeyOfApi<'_> {
    fn entity(&self) -> Entity {
        Entity::of(&self.api.environment_id, &self.key.id).named(&self.key.consumer)
    }

    fn state(&self, _: &App) -> Result<Value> {
        let Self { api, key } = self;
        Ok(json!({
            "id": key.id, "apiId": api.id, "consumer": key.consumer,
            "prefix": key.prefix, "rateLimitPerSecond": key.rate_limit_per_second,
            "dailyLimit": key.daily_limit,
            "status": key.standing.status(Timestamp::now()).as_str(),
            "expiresAt": key.standing.expires_at.map(text),
            "revokedAt": key.standing.revoked_at.map(text),
            "rotatedFrom": key.rotated_from, "createdAt": text(key.created_at),
        }))
    }
}

/// A version with its API. Its label is its name, and the route names the API.
pub struct VersionOfApi<'a> {
    pub api: &'a PublishedApi,
    pub version: &'a Version,
}

impl Audited for VersionOfApi<'_> {
    fn entity(&self) -> Entity {
        let name = version_label(self.version.number);
        Entity::of(&self.api.environment_id, &self.api.id).named(name)
    }

    fn state(&self, _: &App) -> Result<Value> {
        Ok(version(self.version))
    }
}

/// An API with what calls without a version reach.
pub struct WholeApi<'a> {
    pub api: &'a PublishedApi,
    pub current: Option<&'a Version>,
}

impl Audited for WholeApi<'_> {
    fn entity(&self) -> Entity {
        self.api.entity()
    }

    fn state(&self, app: &App) -> Result<Value> {
        let mut state = self.api.state(app)?;
        if let Some(current) = self.current {
            let mut version = version(current);
            for (of_version, of_api) in [
                ("version", "currentVersion"),
                ("flowId", "flowId"),
                ("flowName", "flowName"),
                ("schema", "requestSchema"),
                ("responseSchema", "responseSchema"),
                ("responseMapping", "responseMapping"),
                ("responseStatus", "responseStatus"),
                ("responseHeaders", "responseHeaders"),
            ] {
                state[of_api] = version[of_version].take();
            }
        }
        Ok(state)
    }
}

fn version(version: &Version) -> Value {
    let json = |text: &Option<String>| text.as_deref().map(value);
    let content = &version.content;
    json!({
        "version": version_label(version.number), "status": version.status.as_str(),
        "flowId": version.flow_id, "flowName": version.flow_name,
        "schema": json(&content.request_schema),
        "responseSchema": json(&content.response_schema),
        "responseMapping": json(&content.response_mapping),
        "responseStatus": json(&content.response_status),
        "responseHeaders": json(&content.response_headers),
        "sunsetDate": version.sunset_at.map(|at| text(at)[..10].to_owned()),
    })
}

fn oauth2(oauth2: &OAuth2) -> Value {
    json!({
        "issuer": oauth2.issuer, "jwksUrl": oauth2.jwks_url, "audience": oauth2.audience,
        "scopes": oauth2.scopes,
    })
}

fn cors(cors: &Cors) -> Value {
    json!({
        "origins": cors.origins, "headers": cors.headers,
        "exposedHeaders": cors.exposed_headers, "credentials": cors.credentials,
        "maxAgeSeconds": cors.max_age_seconds,
    })
}

fn text(at: Timestamp) -> String {
    at.to_string()
}

/// Returns the JSON of a text; a text that is no JSON is itself.
pub fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
