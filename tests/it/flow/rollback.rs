//! `POST /flows/{id}/rollback`: an earlier definition, deployed as a new version.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

#[tokio::test]
async fn the_earlier_definition_runs_again() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"flow: back
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  v: "'one'"
"#;
    let (id, url) = app.api.deployed(yaml).await;
    let path = format!("/api/v1/flows/{id}");
    app.api
        .put(
            &path,
            &json!({"yamlConfig": yaml.replace("'one'", "'two'")}),
        )
        .await
        .expect(200);
    app.api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    let back = app
        .api
        .post(&format!("{path}/rollback"), &json!({"versionNumber": 1}))
        .await
        .expect(200);
    assert_eq!(&back["version"], &json!(3));
    assert_eq!(&back["yamlConfig"], &json!(yaml));
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    assert_eq!(target.received()[0].json(), json!({"v": "one"}));
    let versions = app.api.get(&format!("{path}/versions")).await.expect(200);
    let versions = versions["data"].as_array().unwrap();
    assert_eq!(versions.len(), 3);
    assert_eq!(versions[0]["version"], 3);
    assert_eq!(versions[0]["changeSummary"], "rollback to version 1");
    assert_eq!(versions[1]["version"], 2);
    let owner = app.api.get("/api/v1/me").await.expect(200);
    let maker = json!({"type": "api_key", "id": owner["id"], "name": "owner"});
    assert_eq!(versions[0]["createdBy"], maker);
    app.api
        .post(&format!("{path}/rollback"), &json!({"versionNumber": 9}))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_draft_is_not_thrown_away_unasked() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (id, _) = app.api.deployed(&super::manual("kept")).await;
    let path = format!("/api/v1/flows/{id}");
    let draft = super::manual("kept").replace("/in", "/draft");
    app.api
        .put(&path, &json!({"yamlConfig": draft}))
        .await
        .expect(200);
    let refused = app
        .api
        .post(&format!("{path}/rollback"), &json!({"versionNumber": 1}))
        .await;
    assert!(refused.text.contains("discardDraft"), "{}", refused.text);
    refused.expect_error(400, "FAILED_PRECONDITION");
    assert_eq!(app.api.get(&path).await.expect(200)["yamlConfig"], draft);
    let rollback = json!({"versionNumber": 1, "discardDraft": true});
    let back = app
        .api
        .post(&format!("{path}/rollback"), &rollback)
        .await
        .expect(200);
    assert_eq!(&back["yamlConfig"], &json!(super::manual("kept")));
    assert_eq!(&back["draft"], &json!(false));
}
