//! Published APIs and their versions between the wire and the use-cases.

use std::time::Duration;

use kanat_flow::duration;
use kanat_model::Error;
use kanat_model::id::PublishedApiId;
use kanat_model::published_api::{Cors, OAuth2, version_label};
use kanat_proto::v1 as wire;
use kanat_store::published_api::version::Version;

use crate::app::published_api::version::{Retire, SeenVersion};
use crate::app::published_api::{ApiView, Content, NewPublishedApi, Update};
use crate::app::{FieldUpdate, etag};
use crate::carry::carry;
use crate::grpc::clear;

/// How long browsers may remember a preflight when nothing is said of it.
const CORS_AGE_SECONDS: u32 = 600;

/// Reads the content of a version out of a request, with the name of its schema of requests.
macro_rules! content {
    ($request:ident, $schema:ident, $flow:expr) => {
        Content {
            flow: $flow,
            request_schema: field_update($request.$schema),
            response_schema: field_update($request.response_schema),
            response_mapping: field_update($request.response_mapping),
            response_status: field_update($request.response_status),
            response_headers: field_update($request.response_headers),
        }
    };
}

pub fn new(request: wire::CreatePublishedApiRequest) -> NewPublishedApi {
    carry!(
        NewPublishedApi, request { name, path, method, deadline, on_timeout }
        with {
            description: request.description.unwrap_or_default(),
            auth: request.auth_type,
            oauth2: request.oauth2.map(oauth2),
            validation: request.validation_mode,
            strict_response: request.strict_response.unwrap_or(true),
            cors: request.cors.map(cors),
            content: content!(request, request_schema, Some(request.flow_name)),
        }
    )
}

pub fn update(
    mut request: wire::UpdatePublishedApiRequest,
) -> Result<(PublishedApiId, Update), Error> {
    clear::texts(&request.clear, [("description", &mut request.description)])?;
    let update = carry!(
        Update, request {
            name, description, path, method, deadline, on_timeout, strict_response,
        }
        with {
            auth: request.auth_type,
            oauth2: request.oauth2.map(oauth2),
            validation: request.validation_mode,
            cors: request.cors.map(cors),
            content: content!(request, request_schema, request.flow_name),
        }
    );
    Ok((request.id.into(), update))
}

pub fn new_version(
    request: wire::CreatePublishedApiVersionRequest,
) -> (PublishedApiId, String, Content) {
    let content = content!(request, schema, request.flow_name);
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
    carry!(
        OAuth2, oauth2 { issuer, audience, scopes }
        with {
            jwks_url: oauth2.jwks_url.filter(|url| !url.is_empty()),
        }
    )
}

fn cors(cors: wire::PublishedApiCors) -> Cors {
    carry!(
        Cors, cors { origins, headers, exposed_headers, credentials }
        with {
            max_age_seconds: cors.max_age_seconds.unwrap_or(CORS_AGE_SECONDS),
        }
    )
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
    carry!(
        wire::PublishedApi, api { strict_response }
        text { id, environment_id, created_at, updated_at }
        word { method, on_timeout }
        with {
            name: api.name.clone(),
            description: api.description.clone(),
            path: api.path.clone(),
            auth_type: api.auth.as_str().to_owned(),
            oauth2: api.oauth2.clone().map(|oauth2| carry!(
                wire::PublishedApiOAuth2, oauth2 { issuer, jwks_url, audience, scopes }
            )),
            validation_mode: api.validation.as_str().to_owned(),
            flow_id: current.flow_id,
            flow_name: current.flow_name,
            request_schema: current.schema,
            response_schema: current.response_schema,
            response_mapping: current.response_mapping,
            response_status: current.response_status,
            response_headers: current.response_headers,
            deadline: duration::format(Duration::from_millis(api.deadline_ms)),
            cors: api.cors.clone().map(|cors| carry!(
                wire::PublishedApiCors, cors { origins, headers, exposed_headers, credentials }
                with {
                    max_age_seconds: Some(cors.max_age_seconds),
                }
            )),
            current_version: current.version,
            url: seen.url(&api.path),
            versions,
            warnings: seen.warnings.clone(),
            etag: etag(api),
        }
    )
}

pub fn seen_version(seen: SeenVersion) -> wire::PublishedApiVersion {
    wire::PublishedApiVersion {
        warnings: seen.seen.warnings.clone(),
        ..version(&seen.seen, seen.version)
    }
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
    carry!(
        wire::PublishedApiVersion, version { flow_name }
        text { flow_id, created_at }
        optional { deprecated_at, retired_at }
        word { status }
        with {
            sunset_date: version.sunset_at.map(day),
            url: seen.url(&format!("{label}/{}", seen.api.path)),
            version: label,
        }
        over wire::PublishedApiVersion::default()
    )
}
