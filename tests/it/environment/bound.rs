//! Keys that are bound to an environment see nothing of the others.

use kanat_tests::{Rest, Service, on_both_databases, rest::text};
use serde_json::{Value, json};

on_both_databases!(
    Service;
    a_bound_key_reads_its_own_environment_alone,
    a_bound_admin_sees_the_keys_of_its_environment,
);

const ENVIRONMENTS: &str = "/api/v1/environments";

/// Makes a key that is bound to an environment; returns the service as the key sees it.
async fn bound(service: &Service, role: &str, environment: &str) -> Rest {
    let body = json!({"name": role, "role": role, "environmentId": environment});
    let made = service
        .api()
        .post("/api/v1/api-keys", &body)
        .await
        .expect(201);
    service.elsewhere().with_key(&text(&made["key"]))
}

fn names(list: &Value) -> Vec<String> {
    let items = list["data"].as_array().unwrap().iter();
    items.map(|item| text(&item["name"])).collect()
}

async fn a_bound_key_reads_its_own_environment_alone(service: &Service) {
    let viewer = bound(service, "viewer", "production").await;
    let seen = viewer.get(ENVIRONMENTS).await.expect(200);
    assert_eq!(names(&seen), ["production"]);
    assert_eq!(seen["pagination"]["total"], 1);
    let own = format!("{ENVIRONMENTS}/production");
    viewer.get(&own).await.expect(200);
    let other = viewer.get(&format!("{ENVIRONMENTS}/development")).await;
    other.expect_error(403, "PERMISSION_DENIED");
}

async fn a_bound_admin_sees_the_keys_of_its_environment(service: &Service) {
    let elsewhere = service.elsewhere();
    bound(service, "editor", "staging").await;
    let admin = bound(service, "admin", "production").await;
    let keys = admin.get("/api/v1/api-keys").await.expect(200);
    assert_eq!(names(&keys), ["admin"]);
    let all = elsewhere.get("/api/v1/api-keys").await.expect(200);
    assert_eq!(all["pagination"]["total"], 3);
}
