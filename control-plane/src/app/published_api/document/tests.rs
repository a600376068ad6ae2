//! Documents of APIs, as their consumers read them.

use kanat_model::Timestamp;
use kanat_model::published_api::{Method, OAuth2, OnTimeout};
use kanat_store::published_api::version::Content;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

fn api(method: Method, path: &str, auth: Auth) -> PublishedApi {
    PublishedApi {
        id: "api_1".into(),
        account_id: "acc_1".into(),
        environment_id: "env_1".into(),
        name: "orders".to_owned(),
        description: "Takes orders.".to_owned(),
        method,
        path: path.to_owned(),
        shape: path.to_owned(),
        auth,
        oauth2: None,
        validation: Validation::Strict,
        deadline_ms: 30_000,
        on_timeout: OnTimeout::Continue,
        strict_response: false,
        cors: None,
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    }
}

fn version(
    number: u32,
    status: VersionStatus,
    request: Option<&str>,
    response: Option<&str>,
) -> Version {
    Version {
        number,
        status,
        flow_id: "flw_1".into(),
        flow_name: "orders".to_owned(),
        content: Content {
            request_schema: request.map(str::to_owned),
            response_schema: response.map(str::to_owned),
            ..Content::default()
        },
        sunset_at: None,
        created_at: NOW,
        deprecated_at: None,
        retired_at: None,
    }
}

fn document(api: PublishedApi, versions: Vec<Version>) -> (String, Value) {
    let text = write(&ApiView {
        api,
        versions,
        base_url: Some("https://api.example.com".to_owned()),
        warnings: Vec::new(),
    });
    let value = serde_json::from_str(&text).unwrap();
    (text, value)
}

fn statuses(operation: &Value) -> Vec<&str> {
    operation["responses"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn has_every_version_that_serves_and_schemas_as_they_came() {
    let schema = r#"{"type": "object", "maximum": 12345678901234567890123.450}"#;
    let (text, document) = document(
        api(Method::Post, "orders", Auth::ApiKey),
        vec![
            version(3, VersionStatus::Active, None, Some("true")),
            version(2, VersionStatus::Deprecated, Some(schema), None),
            version(1, VersionStatus::Retired, None, None),
        ],
    );
    assert!(
        text.contains(&format!(r#""v2.Request":{schema}"#)),
        "{text}"
    );
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/v3/orders", "/v2/orders", "/orders"]);
    assert_eq!(document["servers"][0]["url"], "https://api.example.com");
    assert_eq!(document["info"]["version"], "v3");
    let old = &document["paths"]["/v2/orders"]["post"];
    let new = &document["paths"]["/v3/orders"]["post"];
    assert_eq!(old["deprecated"], true);
    assert_eq!(
        statuses(old),
        [
            "202", "400", "401", "409", "413", "415", "422", "429", "503"
        ]
    );
    assert_eq!(
        statuses(new),
        [
            "200", "202", "400", "401", "409", "413", "415", "429", "502", "504", "503"
        ]
    );
    assert_eq!(
        document["paths"]["/orders"]["post"]["responses"],
        new["responses"]
    );
    assert_eq!(old["security"], json!([{ "consumerKey": [] }]));
}

#[test]
fn input_without_a_body_is_in_path_and_query() {
    let schema = r##"{"$defs": {"n": {"type": "integer"}}, "required": ["limit"],
        "properties": {"id": {"type": "integer"}, "limit": {"$ref": "#/$defs/n"},
        "open": {"type": "boolean"}}}"##;
    let mut protected = api(Method::Get, "orders/{id}", Auth::OAuth2);
    protected.oauth2 = Some(OAuth2 {
        issuer: "https://id.example/".to_owned(),
        jwks_url: None,
        audience: "orders".to_owned(),
        scopes: vec!["read".to_owned()],
    });
    let (_, document) = document(
        protected,
        vec![version(1, VersionStatus::Active, Some(schema), Some("{}"))],
    );
    let operation = &document["paths"]["/v1/orders/{id}"]["get"];
    assert_eq!(
        operation["parameters"],
        json!([
            { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "limit", "in": "query", "required": true, "schema": {
                "$ref": "#/components/schemas/v1.Request/properties/limit",
            } },
            { "name": "open", "in": "query", "required": false, "schema": { "type": "boolean" } },
        ])
    );
    let schema = &document["components"]["schemas"]["v1.Request"];
    assert_eq!(
        schema["properties"]["limit"],
        json!({ "$ref": "#/components/schemas/v1.Request/$defs/n" })
    );
    assert_eq!(operation["requestBody"], Value::Null);
    assert_eq!(operation["security"], json!([{ "oauth2": ["read"] }]));
    let scheme = &document["components"]["securitySchemes"]["oauth2"];
    assert_eq!(
        scheme["openIdConnectUrl"],
        "https://id.example/.well-known/openid-configuration"
    );
    assert!(statuses(operation).contains(&"403"));
}

#[test]
fn parameters_of_a_call_with_a_body_are_no_part_of_its_schema() {
    let schema = concat!(
        r##"{"$dynamicRef": "#x", "$dynamicAnchor": "x", "##,
        r#""properties": {"id": {"type": "integer"}}}"#
    );
    let api = api(Method::Put, "orders/{id}", Auth::None);
    let (_, document) = document(
        api,
        vec![version(1, VersionStatus::Active, Some(schema), None)],
    );
    let parameter = &document["paths"]["/v1/orders/{id}"]["put"]["parameters"][0];
    assert_eq!(parameter["schema"], json!({ "type": "string" }));
    // What refers to itself by names keeps them, under a name of its own.
    assert_eq!(
        document["components"]["schemas"]["v1.Request"]["$id"],
        "urn:kanat:api_1:v1:request"
    );
}
