//! The audit log: what is told, how it is filtered, how a change of the log itself is found.

mod denied;
mod list;
mod verify;

use kanat_tests::{Rest, Service, rest::text};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/audit-log";

/// Returns the entries that a query finds, newest first.
async fn entries(api: &Rest, query: &str) -> Vec<Value> {
    let found = api.get(&format!("{PATH}?limit=500&{query}")).await;
    found.expect(200)["data"].as_array().unwrap().clone()
}

/// Returns the only entry that a query finds.
async fn entry(api: &Rest, query: &str) -> Value {
    let found = entries(api, query).await;
    assert_eq!(found.len(), 1, "{query}: {found:?}");
    found[0].clone()
}

/// Makes a key; returns its id, and the service as the key sees it.
async fn key(service: &Service, role: &str, environment: Option<&str>) -> (String, Rest) {
    let body = json!({"name": role, "role": role, "environmentId": environment});
    let key = service.api().post("/api/v1/api-keys", &body).await;
    let key = key.expect(201);
    let api = service.elsewhere().with_key(&text(&key["key"]));
    (text(&key["id"]), api)
}
