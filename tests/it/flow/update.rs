//! `PUT` and `PATCH /flows/{id}`: partial, and checked like a new definition.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

use super::manual;
use crate::webhook::passthrough;

#[tokio::test]
async fn a_field_left_out_stays_as_it_is() {
    let app = TestApp::start().await;
    let id = app.api.flow(&manual("partial")).await;
    let path = format!("/api/v1/flows/{id}");
    let put = app
        .api
        .put(&path, &json!({"description": "new words"}))
        .await
        .expect(200);
    assert_eq!(&put["description"], &json!("new words"));
    assert_eq!(&put["yamlConfig"], &json!(manual("partial")));
    let patch = app
        .api
        .patch(&path, &json!({"name": "renamed", "changeSummary": "why"}))
        .await
        .expect(200);
    assert_eq!(&patch["name"], &json!("renamed"));
    let mut warnings = patch["warnings"].as_array().unwrap().iter();
    let warning = warnings.find(|warning| warning["path"] == "flow").unwrap();
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.starts_with("found \"partial\", and the flow is named \"renamed\""),
        "{message}"
    );
    assert_eq!(&patch["description"], &json!("new words"));
    let wrong = app.api.put(&path, &json!({"yamlConfig": "flow: ["})).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_changed_definition_runs_only_when_deployed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&passthrough("changed")).await;
    let filtered = format!("{}when: source.n > 1\n", passthrough("changed"));
    app.api
        .put(
            &format!("/api/v1/flows/{id}"),
            &json!({ "yamlConfig": filtered }),
        )
        .await
        .expect(200);
    let before = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&before, "delivered").await;
    app.api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    let after = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&after, "filtered").await;
}

#[tokio::test]
async fn a_status_pauses_and_resumes() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, _) = app.api.deployed(&passthrough("by-status")).await;
    let path = format!("/api/v1/flows/{id}");
    assert_eq!(
        app.api
            .patch(&path, &json!({"status": "paused"}))
            .await
            .expect(200)["status"],
        "paused"
    );
    assert_eq!(
        app.api
            .patch(&path, &json!({"status": "active"}))
            .await
            .expect(200)["status"],
        "active"
    );
    let refused = app.api.patch(&path, &json!({"status": "asleep"})).await;
    assert_eq!(
        refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "status"
    );
    let draft = app.api.flow(&manual("by-hand")).await;
    for (path, change) in [
        (format!("{path}/resume"), json!({})),
        (format!("/api/v1/flows/{draft}/pause"), json!({})),
    ] {
        app.api
            .post(&path, &change)
            .await
            .expect_error(400, "FAILED_PRECONDITION");
    }
    app.api
        .patch(&path, &json!({"status": "draft"}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn a_description_follows_the_definition_until_it_is_given() {
    let app = TestApp::start().await;
    let yaml = |description: &str| {
        passthrough("described").replacen('\n', &format!("\ndescription: {description}\n"), 1)
    };
    let path = format!("/api/v1/flows/{}", app.api.flow(&yaml("one")).await);
    let describes = async |change: Value| {
        let changed = app.api.patch(&path, &change).await;
        changed.expect(200)["description"].clone()
    };
    assert_eq!(describes(json!({"yamlConfig": yaml("two")})).await, "two");
    assert_eq!(describes(json!({"description": "own"})).await, "own");
    assert_eq!(describes(json!({"yamlConfig": yaml("three")})).await, "own");
}
