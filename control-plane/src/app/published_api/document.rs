//! The OpenAPI 3.1 document of a published API, for its consumers: every version that serves.
//! Schemas stand in it as they came, digits and order kept; where they refer to their own parts,
//! these are found in the document.

mod references;

use std::collections::BTreeMap;

use kanat_model::published_api::{Auth, Path, Validation, VersionStatus, version_label};
use kanat_store::published_api::PublishedApi;
use kanat_store::published_api::version::Version;
use serde_json::{Map, Value, json};

use super::ApiView;

/// JSON text.
pub fn write(seen: &ApiView) -> String {
    let mut paths = Map::new();
    let mut schemas: BTreeMap<String, String> = BTreeMap::new();
    let serving = || seen.versions.iter().filter(|version| serves(version));
    for version in serving() {
        let label = version_label(version.number);
        let path = format!("/{label}/{}", seen.api.path);
        paths.insert(
            path,
            json!({
                seen.api.method.as_str().to_ascii_lowercase(): operation(
                    &seen.api,
                    version,
                    &label,
                ),
            }),
        );
        for (suffix, schema) in [
            ("Request", &version.content.request_schema),
            ("Response", &version.content.response_schema),
        ] {
            if let Some(text) = schema {
                schemas.insert(
                    format!("{label}.{suffix}"),
                    component(text, &seen.api, &label, suffix),
                );
            }
        }
    }
    if let Some(version) = seen.current().filter(|version| serves(version)) {
        let operation = operation(&seen.api, version, "current");
        paths.insert(
            format!("/{}", seen.api.path),
            json!({ seen.api.method.as_str().to_ascii_lowercase(): operation }),
        );
    }
    schemas.insert("Error".to_owned(), error_schema().to_string());
    let servers: Vec<Value> = seen
        .base_url
        .iter()
        .map(|url| json!({ "url": url }))
        .collect();
    let info = json!({
        "title": seen.api.name,
        "description": seen.api.description,
        "version": seen.current().map(|version| version_label(version.number)).unwrap_or_default(),
    });
    let schemas: Vec<String> = schemas
        .into_iter()
        .map(|(name, text)| format!("{}:{text}", Value::from(name)))
        .collect();
    format!(
        concat!(
            r#"{{"openapi":"3.1.0","info":{},"servers":{},"paths":{},"#,
            r#""components":{{"schemas":{{{}}},"securitySchemes":{}}}}}"#
        ),
        info,
        json!(servers),
        Value::Object(paths),
        schemas.join(","),
        security_schemes(&seen.api),
    )
}

fn serves(version: &Version) -> bool {
    match version.status {
        VersionStatus::Active | VersionStatus::Deprecated => true,
        VersionStatus::Retired => false,
    }
}

fn operation(api: &PublishedApi, version: &Version, name: &str) -> Value {
    let label = version_label(version.number);
    let slug: String = api
        .shape
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let mut operation = json!({
        "operationId": format!("{}_{slug}_{name}", api.method.as_str().to_ascii_lowercase()),
        "summary": api.name,
        "parameters": parameters(api, version, &label),
        "responses": responses(api, version, &label),
        "security": security(api),
    });
    if version.status == VersionStatus::Deprecated {
        operation["deprecated"] = Value::Bool(true);
    }
    if api.method.has_body() {
        let schema = match &version.content.request_schema {
            Some(_) => json!({ "$ref": place(&label, "Request") }),
            None => json!({}),
        };
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// Returns the parameters of path and query; calls without a body have their input there.
fn parameters(api: &PublishedApi, version: &Version, label: &str) -> Vec<Value> {
    let schema: Value = version
        .content
        .request_schema
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let names = Path::parse(&api.path)
        .map(|path| path.parameters().into_iter().map(str::to_owned).collect());
    let names: Vec<String> = names.unwrap_or_default();
    let of = |name: &str| match properties.get(name).filter(|_| !api.method.has_body()) {
        Some(property) if !property.to_string().contains("\"$ref\"") => property.clone(),
        Some(_) => {
            json!({ "$ref": format!("{}/properties/{}", place(label, "Request"), pointer(name)) })
        }
        None => json!({ "type": "string" }),
    };
    let in_path = names
        .iter()
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": of(name) }));
    let mut parameters: Vec<Value> = in_path.collect();
    if api.method.has_body() {
        let description = "A call with the same key within 24 hours is the same call.";
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "description": description,
            "schema": { "type": "string" },
        }));
        return parameters;
    }
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let in_query = properties
        .keys()
        .filter(|name| !names.contains(name))
        .map(|name| {
            let required = required.contains(&name.as_str());
            json!({ "name": name, "in": "query", "required": required, "schema": of(name) })
        });
    parameters.extend(in_query);
    parameters
}

fn responses(api: &PublishedApi, version: &Version, label: &str) -> Value {
    let mut responses = Map::new();
    if version.content.response_schema.is_some() {
        let literal = version
            .content
            .response_status
            .as_deref()
            .filter(|text| text.parse::<u16>().is_ok());
        let schema = json!({ "$ref": place(label, "Response") });
        let answer = json!({
            "description": "The answer.",
            "content": { "application/json": { "schema": schema } },
        });
        responses.insert(literal.unwrap_or("200").to_owned(), answer);
    }
    let schema = json!({
        "type": "object",
        "required": ["messageId", "status"],
        "properties": {
            "messageId": { "type": "string" },
            "status": { "type": "string", "enum": ["accepted", "duplicate"] },
        },
    });
    let description = match version.content.response_schema {
        Some(_) => {
            "The flow knows the call by its idempotency_key (status duplicate): messageId is that \
             of the call that came first."
        }
        None => {
            "Accepted, and kept until it is done; or known by the flow's idempotency_key (status \
             duplicate), with the messageId of the call that came first."
        }
    };
    let accepted = json!({
        "description": description,
        "content": { "application/json": { "schema": schema } },
    });
    // The answer of a flow may have this status, too.
    responses.entry("202").or_insert(accepted);
    for (status, description) in errors(api, version) {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        let mut error = json!({
            "description": description,
            "content": { "application/json": { "schema": schema } },
        });
        if matches!(status, "429" | "503") {
            let seconds = json!({
                "description": "Whole seconds.",
                "schema": { "type": "integer", "minimum": 1 },
            });
            error["headers"] = json!({ "Retry-After": seconds });
        }
        responses.insert(status.to_owned(), error);
    }
    Value::Object(responses)
}

/// Returns the statuses that a call can be refused with.
fn errors(api: &PublishedApi, version: &Version) -> Vec<(&'static str, &'static str)> {
    let mut errors = vec![("400", "The request cannot be read.")];
    match api.auth {
        Auth::ApiKey => errors.push((
            "401",
            "The key is missing, not known, or no longer accepted.",
        )),
        Auth::OAuth2 => errors.extend([
            ("401", "The token is missing, or not accepted."),
            ("403", "The token lacks a scope."),
        ]),
        Auth::None => {}
    }
    if api.method.has_body() {
        errors.extend([
            (
                "409",
                "The Idempotency-Key came with another request, or its first call is not \
                     answered yet.",
            ),
            ("413", "The body is too large."),
            ("415", "The body is neither JSON nor a form."),
        ]);
    }
    if version.content.request_schema.is_some() && api.validation == Validation::Strict {
        errors.push((
            "422",
            "The request does not fit its schema; details name what is wrong.",
        ));
    }
    if api.auth == Auth::ApiKey {
        errors.push(("429", "The key was used up to its limit."));
    }
    if version.content.response_schema.is_some() {
        errors.extend([
            ("502", "What had to be called failed."),
            ("504", "The answer took too long."),
        ]);
    }
    errors.push(("503", "Not ready to take calls."));
    errors
}

fn security(api: &PublishedApi) -> Value {
    match api.auth {
        Auth::ApiKey => json!([{ "consumerKey": [] }]),
        Auth::OAuth2 => {
            let scopes = api
                .oauth2
                .as_ref()
                .map(|oauth2| oauth2.scopes.clone())
                .unwrap_or_default();
            json!([{ "oauth2": scopes }])
        }
        Auth::None => json!([]),
    }
}

fn security_schemes(api: &PublishedApi) -> Value {
    match (api.auth, &api.oauth2) {
        (Auth::ApiKey, _) => {
            let description = "A consumer key, as in Authorization: Bearer kanat_ck_...";
            json!({
                "consumerKey": { "type": "http", "scheme": "bearer", "description": description },
            })
        }
        (Auth::OAuth2, Some(oauth2)) => {
            let url = format!(
                "{}/.well-known/openid-configuration",
                oauth2.issuer.trim_end_matches('/')
            );
            json!({ "oauth2": { "type": "openIdConnect", "openIdConnectUrl": url } })
        }
        (Auth::OAuth2, None) | (Auth::None, _) => json!({}),
    }
}

fn error_schema() -> Value {
    let detail = json!({
        "type": "object",
        "properties": { "field": { "type": "string" }, "message": { "type": "string" } },
    });
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": { "type": "string" },
            "code": { "type": "string" },
            "details": { "type": "array", "items": detail },
            "requestId": { "type": "string" },
        },
    })
}

/// Returns the position of a version's schema in the document.
fn place(label: &str, suffix: &str) -> String {
    format!("#/components/schemas/{label}.{suffix}")
}

/// The schema of a version for its place.
fn component(text: &str, api: &PublishedApi, label: &str, suffix: &str) -> String {
    if !["\"$ref\"", "\"$dynamicRef\"", "\"$recursiveRef\""]
        .iter()
        .any(|word| text.contains(word))
    {
        return text.to_owned();
    }
    let text = text.trim();
    references::placed(text, &place(label, suffix))
        .unwrap_or_else(|| as_resource(text, &id(api, label, suffix)))
}

/// A name for a schema that refers to its own parts by names.
fn id(api: &PublishedApi, label: &str, suffix: &str) -> String {
    format!(
        "urn:kanat:{}:{label}:{}",
        api.id,
        suffix.to_ascii_lowercase()
    )
}

/// The schema as it came, and with a name, so that what it says of itself is not said of the
/// document.
fn as_resource(text: &str, id: &str) -> String {
    let top = serde_json::from_str::<Value>(text).unwrap_or_default();
    let is_named = top
        .get("$id")
        .or_else(|| top.get("id"))
        .is_some_and(Value::is_string);
    match text.strip_prefix('{') {
        Some(rest) if !is_named => format!(r#"{{"$id":{},{rest}"#, Value::from(id)),
        Some(_) | None => text.to_owned(),
    }
}

/// A name as a part of a JSON pointer in a URI.
fn pointer(name: &str) -> String {
    let escaped = name.replace('~', "~0").replace('/', "~1");
    url::form_urlencoded::byte_serialize(escaped.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

#[cfg(test)]
mod tests;
