//! The account: who calls, and what the caller may do.

use kanat_tests::TestApp;
use serde_json::json;

#[tokio::test]
async fn a_caller_reads_its_account_and_its_permissions() {
    let app = TestApp::start().await;
    let me = app.api.get("/api/v1/me").await.expect(200);
    assert_eq!(&me["type"], &json!("api_key"));
    assert_eq!(&me["role"], &json!("owner"));
    assert!(
        me["id"].as_str().unwrap().starts_with("key_") && me["account"]["id"].is_string(),
        "{me}"
    );
    assert_eq!(me["environment"]["name"], "development");
    assert_eq!(
        me["permissions"],
        json!(["read", "write", "admin", "billing"])
    );

    let body = json!({"name": "dashboard", "role": "viewer", "environmentId": "staging"});
    let made = app.api.post("/api/v1/api-keys", &body).await.expect(201);
    let me = app
        .api
        .with_key(made["key"].as_str().unwrap())
        .get("/api/v1/me")
        .await
        .expect(200);
    assert_eq!(&me["id"], &made["id"]);
    assert_eq!(&me["name"], &json!("dashboard"));
    assert_eq!(&me["role"], &json!("viewer"));
    assert_eq!(&me["permissions"], &json!(["read"]));
    assert_eq!(me["environment"]["name"], "staging");
}
