//! Published APIs and their versions between the wire and the use-cases.

use std::time::Duration;

use kanat_flow::duration;
use kanat_model::Error;
use kanat_model::id::PublishedApiId;
use kanat_model::published_api::{Cors, OAuth2, version_label};
use kanat_proto::v1 as wire;
use kanat_store::published_api::version::Version;

use crate::app::FieldUpdate;
use crate::app::published_api::version::{Retire, SeenVersion};
use crate::app::published_api::{ApiView, Content, NewPublishedApi, Update, api_etag};
use crate::grpc::clear;

/// How long browsers may remember a preflight when nothing is said of it.
const CORS_AGE_SECONDS: u32 = 600;

pub fn new(request: wire::CreatePublishedApiRequest) -> NewPublishedApi {
    NewPublishedApi {
        name: request.name,
        description: request.description.unwrap_or_default(),
        path: request.path,
        method: request.method,
        auth: request.auth_type,
        oauth2: request.oauth2.map(oauth2),
        validation: request.validation_mode,
        deadline: request.deadline,
        on_timeout: request.on_timeout,
        strict_response: request.strict_response.unwrap_or(true),
        cors: request.cors.map(cors),
        content: Content {
            flow: Some(request.flow_name),
            request_schema: field_update(request.request_schema),
            response_schema: field_update(request.response_schema),
            response_mapping: field_update(request.response_mapping),
            response_status: field_update(request.response_status),
            response_headers: field_update(request.response_headers),
        },
    }
}

pub fn update(request: wire::UpdatePublishedApiRequest) -> Result<(PublishedApiId, Update), Error> {
    clear::check(&request.clear, &["description"])?;
    let update = Update {
        name: request.name,
        description: clear::text(request.description, &request.clear, "description"),
        path: request.path,
        method: request.method,
        auth: request.auth_type,
        oauth2: request.oauth2.map(oauth2),
        validation: request.validation_mode,
        deadline: request.deadline,
        on_timeout: request.on_timeout,
        strict_response: request.strict_response,
        cors: request.cors.map(cors),
        content: Content {
            flow: request.flow_name,
            request_schema: field_update(request.request_schema),
            response_schema: field_update(request.response_schema),
            response_mapping: field_update(request.response_mapping),
            response_status: field_update(request.response_status),
            response_headers: field_update(request.response_headers),
        },
    };
    Ok((request.id.into(), update))
}

pub fn new_version(
    request: wire::CreatePublishedApiVersionRequest,
) -> (PublishedApiId, String, Content) {
    let content = Content {
        flow: request.flow_name,
        request_schema: field_update(request.schema),
        response_schema: field_update(request.response_schema),
        response_mapping: field_update(request.response_mapping),
        response_status: field_update(request.response_status),
        response_headers: field_update(request.response_headers),
    };
    (request.id.into(), request.version, content)
}

pub fn retire(request: wire::RetirePublishedApiVersionRequest) -> (PublishedApiId, String, Retire) {
    let when = if request.force.unwrap_or_default() {
        Retire::AtOnce
    } else {
        Retire::AfterItsSunset
    };
    (request.id.into(), request.version, when)
}

/// Reads an optional JSON value: null clears it.
fn field_update(json: Option<wire::Json>) -> FieldUpdate<String> {
    match json {
        None => FieldUpdate::Keep,
        Some(json) if json.text.trim() == "null" => FieldUpdate::Clear,
        Some(json) => FieldUpdate::Set(json.text),
    }
}

fn oauth2(oauth2: wire::PublishedApiOAuth2) -> OAuth2 {
    let wire::PublishedApiOAuth2 {
        issuer,
        jwks_url,
        audience,
        scopes,
    } = oauth2;
    OAuth2 {
        issuer,
        jwks_url: jwks_url.filter(|url| !url.is_empty()),
        audience,
        scopes,
    }
}

fn cors(cors: wire::PublishedApiCors) -> Cors {
    let wire::PublishedApiCors {
        origins,
        headers,
        exposed_headers,
        credentials,
        max_age_seconds,
    } = cors;
    let max_age_seconds = max_age_seconds.unwrap_or(CORS_AGE_SECONDS);
    Cors {
        origins,
        headers,
        exposed_headers,
        credentials,
        max_age_seconds,
    }
}

/// An API with what its current version has.
pub fn api(seen: ApiView) -> wire::PublishedApi {
    let current = seen
        .current()
        .cloned()
        .map(|current| version(&seen, current))
        .unwrap_or_default();
    let versions = seen
        .versions
        .iter()
        .map(|each| short(&seen, each.clone()))
        .collect();
    let api = &seen.api;
    wire::PublishedApi {
        id: api.id.as_str().to_owned(),
        name: api.name.clone(),
        description: api.description.clone(),
        path: api.path.clone(),
        method: api.method.as_str().to_owned(),
        auth_type: api.auth.as_str().to_owned(),
        oauth2: api.oauth2.clone().map(|oauth2| wire::PublishedApiOAuth2 {
            issuer: oauth2.issuer,
            jwks_url: oauth2.jwks_url,
            audience: oauth2.audience,
            scopes: oauth2.scopes,
        }),
        validation_mode: api.validation.as_str().to_owned(),
        flow_id: current.flow_id,
        flow_name: current.flow_name,
        request_schema: current.schema,
        response_schema: current.response_schema,
        response_mapping: current.response_mapping,
        response_status: current.response_status,
        response_headers: current.response_headers,
        deadline: duration::format(Duration::from_millis(api.deadline_ms)),
        on_timeout: api.on_timeout.as_str().to_owned(),
        strict_response: api.strict_response,
        cors: api.cors.clone().map(|cors| wire::PublishedApiCors {
            origins: cors.origins,
            headers: cors.headers,
            exposed_headers: cors.exposed_headers,
            credentials: cors.credentials,
            max_age_seconds: Some(cors.max_age_seconds),
        }),
        current_version: current.version,
        url: format!("{}/{}", seen.base_url, api.path),
        versions,
        environment_id: api.environment_id.as_str().to_owned(),
        created_at: api.created_at.to_string(),
        updated_at: api.updated_at.to_string(),
        etag: api_etag(api),
    }
}

pub fn seen_version(seen: SeenVersion) -> wire::PublishedApiVersion {
    version(&seen.seen, seen.version)
}

pub fn version(seen: &ApiView, version: Version) -> wire::PublishedApiVersion {
    let json = |text: Option<String>| text.map(|text| wire::Json { text });
    let content = version.content.clone();
    wire::PublishedApiVersion {
        schema: json(content.request_schema),
        response_schema: json(content.response_schema),
        response_mapping: json(content.response_mapping),
        response_status: json(content.response_status),
        response_headers: json(content.response_headers),
        ..short(seen, version)
    }
}

/// A version without its schemas and mapping.
fn short(seen: &ApiView, version: Version) -> wire::PublishedApiVersion {
    let label = version_label(version.number);
    let day = |at: kanat_model::Timestamp| at.to_string().chars().take(10).collect();
    wire::PublishedApiVersion {
        status: version.status.as_str().to_owned(),
        flow_id: version.flow_id.into_string(),
        flow_name: version.flow_name,
        sunset_date: version.sunset_at.map(day),
        url: format!("{}/{label}/{}", seen.base_url, seen.api.path),
        created_at: version.created_at.to_string(),
        deprecated_at: version.deprecated_at.map(|at| at.to_string()),
        retired_at: version.retired_at.map(|at| at.to_string()),
        version: label,
        ..wire::PublishedApiVersion::default()
    }
}
