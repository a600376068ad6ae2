//! `POST /flows`: a draft from a definition.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::manual;
use crate::webhook::passthrough;

#[tokio::test]
async fn a_definition_becomes_a_draft_with_warnings_for_names_that_do_not_exist_yet() {
    let app = TestApp::start().await;
    let made = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": manual("drafted") }))
        .await
        .expect(201);
    assert!(made["id"].as_str().unwrap().starts_with("flw_"));
    assert_eq!(&made["name"], &json!("drafted"));
    assert_eq!(&made["status"], &json!("draft"));
    assert_eq!(&made["version"], &json!(0));
    assert_eq!(made["yamlConfig"], manual("drafted"));
    let warnings = made["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|w| w["message"].as_str().unwrap().contains("erp")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_webhook_flow_has_its_address_from_the_start_and_keeps_it() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let made = app
        .api
        .post(
            "/api/v1/flows",
            &json!({ "yamlConfig": passthrough("early") }),
        )
        .await
        .expect(201);
    let url = made["webhookUrl"].as_str().unwrap();
    app.api
        .without_key()
        .post(url, &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");
    let deploy = format!("/api/v1/flows/{}/deploy", made["id"].as_str().unwrap());
    assert_eq!(
        app.api.post(&deploy, &json!({})).await.expect(200)["webhookUrl"],
        url
    );
    app.api
        .without_key()
        .post(url, &json!({}))
        .await
        .expect(202);
}

#[tokio::test]
async fn a_wrong_definition_is_refused_with_every_error_at_once() {
    let app = TestApp::start().await;
    let yaml = r"flow: broken
version: 1
source:
  trigger: webhok
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  a: source.x | uppercas
  b: source.y |
foo: 1
on_error:
  retry: often
";
    let details = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": yaml }))
        .await;
    let details = details.expect_error(400, "INVALID_ARGUMENT");
    let details = details.as_array().unwrap();
    let text = details
        .iter()
        .map(|d| format!("{} {}\n", d["field"], d["message"]))
        .collect::<String>();
    assert!(details.len() >= 5, "{text}");
    for expected in ["webhook", "uppercase", "foo", "retry"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(text.contains("line 4") || text.contains(":4:"), "{text}");
}

#[tokio::test]
async fn a_name_is_unique_in_its_environment() {
    let app = TestApp::start().await;
    app.api.flow(&manual("twice")).await;
    let again = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": manual("twice") }))
        .await;
    again.expect_error(409, "ALREADY_EXISTS");
    let elsewhere = app.api.with_header("x-environment", "staging");
    elsewhere
        .post("/api/v1/flows", &json!({ "yamlConfig": manual("twice") }))
        .await
        .expect(201);
}

#[tokio::test]
async fn both_spellings_are_taken_and_unknown_or_wrong_fields_named() {
    let app = TestApp::start().await;
    app.api
        .post("/api/v1/flows", &json!({ "yaml_config": manual("snake") }))
        .await
        .expect(201);
    let unknown = app
        .api
        .post(
            "/api/v1/flows",
            &json!({ "yamlConfig": manual("x"), "yaml": "" }),
        )
        .await;
    assert_eq!(
        unknown.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "yaml"
    );
    let wrong = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": 7 }))
        .await;
    assert_eq!(
        wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "yamlConfig"
    );
    let malformed = app
        .api
        .raw(
            "POST",
            "/api/v1/flows",
            "application/json",
            "{\"yamlConfig\": ",
        )
        .await;
    malformed.expect_error(400, "INVALID_ARGUMENT");
}
