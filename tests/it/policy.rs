//! Governance policies: kept for the account, changed by its admins alone.

mod create;
mod delete;
mod get;
mod list;
mod update;

use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::{Value, json};

const PATH: &str = "/api/v1/governance/policies";

/// Makes a policy of that name; returns its record.
async fn policy(api: &Rest, name: &str) -> Value {
    let body = json!({"name": name, "expression": "flow.on_error.retry != ''"});
    api.post(PATH, &body).await.expect(201)
}

fn path_of(policy: &Value) -> String {
    format!("{PATH}/{}", text(&policy["id"]))
}

/// Returns the service as a new key with this role, and maybe of one environment, sees it.
async fn as_role(app: &TestApp, role: &str, environment: Option<&str>) -> Rest {
    let body = json!({"name": role, "role": role, "environmentId": environment});
    let key = app.api.post("/api/v1/api-keys", &body).await.expect(201);
    app.api.with_key(&text(&key["key"]))
}
