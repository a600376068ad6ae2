//! `POST /flows/{id}/deploy`: what was deployed is live.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::manual;
use crate::webhook::passthrough;

#[tokio::test]
async fn a_deployed_flow_delivers_with_the_very_next_request() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let id = app.api.flow(&passthrough("live")).await;
    let answer = app
        .api
        .post(
            &format!("/api/v1/flows/{id}/deploy"),
            &json!({"changeSummary": "first"}),
        )
        .await;
    assert_eq!(answer.header("x-config-applied"), "");
    let flow = answer.expect(200);
    assert_eq!(&flow["status"], &json!("active"));
    assert_eq!(&flow["version"], &json!(1));
    let url = flow["webhookUrl"].as_str().unwrap();
    assert!(
        url.starts_with(&format!("{}/webhooks/receive/", app.base)),
        "{url}"
    );
    assert!(
        url.rsplit('/').next().unwrap().len() >= 22,
        "at least 128 bits"
    );
    app.api
        .without_key()
        .post(url, &json!({}))
        .await
        .expect(202);
    target.arrivals(1).await;

    let again = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&again["version"], &json!(1), "nothing is changed");
    assert_eq!(&again["webhookUrl"], &json!(url), "nothing is changed");
    let versions = app
        .api
        .get(&format!("/api/v1/flows/{id}/versions"))
        .await
        .expect(200);
    assert_eq!(versions["pagination"]["total"], 1);
    let changed = format!("{}when: source\n", passthrough("live"));
    app.api
        .put(
            &format!("/api/v1/flows/{id}"),
            &json!({ "yamlConfig": changed }),
        )
        .await
        .expect(200);
    let next = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&next["version"], &json!(2), "the token is kept");
    assert_eq!(&next["webhookUrl"], &json!(url), "the token is kept");
}

#[tokio::test]
async fn missing_names_are_errors_all_at_once() {
    let app = TestApp::start().await;
    let yaml = r"flow: names
version: 1
source:
  trigger: manual
target:
  connector: nowhere
  endpoint: /in
  method: POST
mapping:
  a: source.x | lookup(no_table)
  b: source.x | lookup(no_other, x)
";
    let id = app.api.flow(yaml).await;
    let details = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await;
    let text = details.expect_error(400, "INVALID_ARGUMENT").to_string();
    for name in ["nowhere", "no_table", "no_other"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert_eq!(
        app.api
            .get(&format!("/api/v1/flows/{id}"))
            .await
            .expect(200)["status"],
        "draft"
    );
}

#[tokio::test]
async fn a_flow_for_published_apis_needs_neither_steps_nor_target() {
    let app = TestApp::start().await;
    let id = app
        .api
        .flow(
            r"name: quote
version: 1
source:
  trigger: api
mapping:
  total: source.total
",
        )
        .await;
    let flow = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&flow["status"], &json!("active"));
    assert_eq!(&flow["version"], &json!(1));
}

#[tokio::test]
async fn a_message_keeps_the_version_it_was_accepted_under() {
    let app = TestApp::start().await;
    let target = FakeTarget::failing(1).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"flow: keeps
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  v: "'one'"
on_error:
  retry: 3x fixed(2s)
"#;
    let (id, url) = app.api.deployed(yaml).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "retrying").await;
    app.api
        .put(
            &format!("/api/v1/flows/{id}"),
            &json!({"yamlConfig": yaml.replace("'one'", "'two'")}),
        )
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    let delivered = app.api.message_becomes(&message, "delivered").await;
    assert_eq!(delivered["flowVersion"], 1);
    let bodies: Vec<_> = target
        .received()
        .iter()
        .map(|r| r.json()["v"].clone())
        .collect();
    assert_eq!(bodies, ["one", "one"]);
}

#[tokio::test]
async fn a_manual_flow_has_no_webhook() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let id = app.api.flow(&manual("by-hand")).await;
    let flow = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(flow.get("webhookUrl"), None);
}

#[tokio::test]
async fn a_paused_flow_goes_on_with_what_it_held_or_stays_paused() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&passthrough("resting")).await;
    let path = format!("/api/v1/flows/{id}");
    app.api
        .post(&format!("{path}/pause"), &json!({}))
        .await
        .expect(200);
    let message = app.api.webhook(&url, &json!({})).await;
    let kept = app
        .api
        .post(&format!("{path}/deploy"), &json!({"keepPaused": true}))
        .await
        .expect(200);
    assert_eq!(&kept["status"], &json!("paused"), "{kept}");
    assert_eq!(&kept["heldMessages"], &json!(1), "{kept}");
    app.api.message_becomes(&message, "held").await;
    let active = app
        .api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&active["status"], &json!("active"), "{active}");
    assert_eq!(&active["heldMessages"], &json!(1), "{active}");
    app.api.message_becomes(&message, "delivered").await;
    let again = app
        .api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(again.get("heldMessages"), None);
}
