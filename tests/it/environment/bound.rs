//! Keys that are bound to an environment see nothing of the others.

use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::{Value, json};

const ENVIRONMENTS: &str = "/api/v1/environments";

async fn bound(api: &Rest, role: &str, environment: &str) -> Rest {
    let body = json!({"name": role, "role": role, "environmentId": environment});
    let made = api.post("/api/v1/api-keys", &body).await.expect(201);
    api.with_key(&text(&made["key"]))
}

fn names(list: &Value) -> Vec<String> {
    let items = list["data"].as_array().unwrap().iter();
    items.map(|item| text(&item["name"])).collect()
}

#[tokio::test]
async fn a_bound_key_reads_its_own_environment_alone() {
    let app = TestApp::start().await;
    let viewer = bound(&app.api, "viewer", "production").await;
    let seen = viewer.get(ENVIRONMENTS).await.expect(200);
    assert_eq!(names(&seen), ["production"]);
    assert_eq!(seen["pagination"]["total"], 1);
    let own = format!("{ENVIRONMENTS}/production");
    viewer.get(&own).await.expect(200);
    let other = viewer.get(&format!("{ENVIRONMENTS}/development")).await;
    other.expect_error(403, "PERMISSION_DENIED");
}

#[tokio::test]
async fn a_bound_admin_sees_the_keys_of_its_environment() {
    let app = TestApp::start().await;
    bound(&app.api, "editor", "staging").await;
    let admin = bound(&app.api, "admin", "production").await;
    let keys = admin.get("/api/v1/api-keys").await.expect(200);
    assert_eq!(names(&keys), ["admin"]);
    let all = app.api.get("/api/v1/api-keys").await.expect(200);
    assert_eq!(all["pagination"]["total"], 3);
}
