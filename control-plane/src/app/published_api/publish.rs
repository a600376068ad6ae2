//! Plan that nodes get of a published API, with all of its versions.

use std::collections::BTreeSet;

use kanat_flow::{Response, parse_stored_response};
use kanat_model::published_api::{
    Cors, OAuth2, OnTimeout, Validation, VersionStatus, version_label,
};
use kanat_model::{Error, Result, Timestamp};
use kanat_plan_stream::Kind;
use kanat_plan_stream::body::encode_api;
use kanat_proto::plan::v1 as plan;
use kanat_store::published_api::version::Version;
use kanat_store::published_api::{PublishedApi, uses};

use super::{ApiView, seen};
use crate::app::PublishTransaction;
use crate::app::flow::{EnvironmentNames, response_texts};
use crate::app::users::variable_id;
use crate::carry::carry;

/// Publishes an API as its rows now are, and gives it as callers see it.
pub async fn api(change: &mut PublishTransaction<'_>, api: PublishedApi) -> Result<ApiView> {
    let seen = seen(change.app, change, api).await?;
    let names = EnvironmentNames::load(change, &seen.api.environment_id).await?;
    let mut used = BTreeSet::new();
    let mut versions = Vec::with_capacity(seen.versions.len());
    // In the order of their numbers.
    for version in seen.versions.iter().rev() {
        versions.push(match version.status {
            VersionStatus::Active | VersionStatus::Deprecated => {
                let response = response(&seen.api, version)?;
                used.extend(resource_ids(&seen.api, &response, &names));
                serving(version, &response)
            }
            VersionStatus::Retired => bare(version),
        });
    }
    let used: Vec<String> = used.into_iter().collect();
    uses::replace(change, &seen.api.id, &used).await?;
    let body = encode_api(&body(&seen.api, versions));
    change
        .put_body(Kind::PublishedApi, &seen.api.id, &body)
        .await?;
    Ok(seen)
}

fn body(api: &PublishedApi, versions: Vec<plan::ApiVersion>) -> plan::PublishedApi {
    carry!(
        plan::PublishedApi, api { deadline_ms, strict_response }
        text { id, account_id, environment_id }
        word { method, auth }
        with {
            name: api.name.clone(),
            path: api.path.clone(),
            oauth2: api.oauth2.as_ref().map(oauth2),
            strict: match api.validation {
                Validation::Strict => true,
                Validation::Lenient => false,
            },
            versions,
            discard_late: match api.on_timeout {
                OnTimeout::Discard => true,
                OnTimeout::Continue => false,
            },
            cors: api.cors.as_ref().map(cors),
        }
    )
}

/// A version that serves.
fn serving(version: &Version, response: &Response) -> plan::ApiVersion {
    plan::ApiVersion {
        request_schema: version.content.request_schema.clone().unwrap_or_default(),
        response_schema: version.content.response_schema.clone().unwrap_or_default(),
        synchronous: version.content.response_schema.is_some(),
        response_mapping: response.to_plan(),
        ..bare(version)
    }
}

/// A version without what it takes to serve.
fn bare(version: &Version) -> plan::ApiVersion {
    plan::ApiVersion {
        label: version_label(version.number),
        number: version.number,
        status: version.status.as_str().to_owned(),
        sunset_at: version.sunset_at.map_or(0, Timestamp::as_millis),
        flow_id: version.flow_id.to_string(),
        ..plan::ApiVersion::default()
    }
}

/// It was right when it was stored; the flow's steps may have got other names since.
fn response(api: &PublishedApi, version: &Version) -> Result<Response> {
    parse_stored_response(&response_texts(&version.content), None).map_err(|faults| {
        let fault = faults.first().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            api.id = %api.id,
            fault,
            "the stored answer of a published API cannot be read",
        );
        Error::internal()
    })
}

fn resource_ids(api: &PublishedApi, response: &Response, names: &EnvironmentNames) -> Vec<String> {
    let tables = response
        .tables()
        .filter_map(|name| names.table_id(name))
        .map(|id| Kind::LookupTable.resource_id(id));
    let adapters = response
        .adapters()
        .filter_map(|name| names.adapter_id(name))
        .map(|id| Kind::Adapter.resource_id(id));
    let environment = api.environment_id.as_str();
    let variables = response
        .variables()
        .map(|name| variable_id(environment, name));
    tables.chain(adapters).chain(variables).collect()
}

fn oauth2(oauth2: &OAuth2) -> plan::OAuth2 {
    plan::OAuth2 {
        issuer: oauth2.issuer.clone(),
        jwks_url: oauth2.jwks_url.clone().unwrap_or_default(),
        audience: oauth2.audience.clone(),
        scopes: oauth2.scopes.clone(),
    }
}

fn cors(cors: &Cors) -> plan::Cors {
    plan::Cors {
        origins: cors.origins.clone(),
        headers: cors.headers.clone(),
        exposed_headers: cors.exposed_headers.clone(),
        credentials: cors.credentials,
        max_age_seconds: cors.max_age_seconds,
    }
}
