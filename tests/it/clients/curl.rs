//! `curl`, as a person at a shell would use it.

use kanat_tests::{FakeTarget, TestApp, app, until};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{DELIVERED, FLOW, PAYLOAD};

/// Runs curl and gives status and body.
async fn curl(app: &TestApp, arguments: &[&str], path: &str) -> (u16, Value) {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--max-time",
            "60",
            "--write-out",
            "\n%{http_code}",
        ])
        .args(["--header", &format!("Authorization: Bearer {}", app::KEY)])
        .args(arguments)
        .arg(format!("{}{path}", app.base))
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (body, status) = text.rsplit_once('\n').unwrap();
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(body).unwrap()
    };
    (status.parse().unwrap(), body)
}

async fn post(app: &TestApp, path: &str, body: &str) -> (u16, Value) {
    curl(
        app,
        &[
            "--header",
            "Content-Type: application/json",
            "--data-binary",
            body,
        ],
        path,
    )
    .await
}

#[tokio::test]
async fn curl_creates_deploys_and_runs_a_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let instance = json!({
        "catalogId": "http",
        "name": "erp",
        "config": {"base_url": target.url(), "auth": "none"},
    });
    assert_eq!(
        post(&app, "/api/v1/connectors/instances", &instance.to_string())
            .await
            .0,
        201
    );
    let (status, flow) = post(
        &app,
        "/api/v1/flows",
        &json!({"yamlConfig": FLOW}).to_string(),
    )
    .await;
    assert_eq!(status, 201, "{flow}");
    assert_eq!(flow["status"], "draft", "{flow}");
    let path = format!("/api/v1/flows/{}", flow["id"].as_str().unwrap());
    let (status, flow) = curl(&app, &["--request", "POST"], &format!("{path}/deploy")).await;
    assert_eq!(status, 200, "{flow}");
    assert_eq!(flow["status"], "active", "{flow}");
    assert_eq!(flow["version"], 1, "{flow}");
    let (status, run) = post(
        &app,
        &format!("{path}/run"),
        &format!("{{\"payload\": {PAYLOAD}}}"),
    )
    .await;
    assert_eq!(status, 202, "{run}");
    assert_eq!(run["status"], "accepted", "{run}");
    let message = format!("/api/v1/messages/{}", run["messageId"].as_str().unwrap());
    until("the message is delivered", || async {
        (curl(&app, &[], &message).await.1["status"] == "delivered").then_some(())
    })
    .await;
    assert_eq!(target.received()[0].body, DELIVERED.as_bytes());
}

#[tokio::test]
async fn curls_own_content_type_is_refused_in_words() {
    let app = TestApp::start().await;
    let (status, error) = curl(&app, &["--data", "{}"], "/api/v1/flows").await;
    assert_eq!(status, 415);
    assert_eq!(error["code"], "INVALID_ARGUMENT");
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains("application/json"),
        "{error}"
    );
}
