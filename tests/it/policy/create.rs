//! `POST /governance/policies`.

use kanat_tests::{TestApp, rest::text};
use serde_json::json;

use super::{PATH, as_role, path_of, policy};

#[tokio::test]
async fn a_new_policy_is_what_was_sent() {
    let app = TestApp::start().await;
    let environments = app.api.get("/api/v1/environments").await.expect(200);
    let production = &environments["data"][2]["id"];
    let body = json!({
        "name": "retries",
        "description": "Flows of production retry.",
        "severity": "warn",
        "expression": "has(flow.on_error)",
        "message": "say on_error",
        "environmentIds": [production],
        "enabled": false,
    });
    let made = app.api.post(PATH, &body).await.expect(201);
    assert!(text(&made["id"]).starts_with("pol_"), "{made}");
    assert!(text(&made["createdAt"]).ends_with('Z'), "{made}");
    let expected = json!({
        "id": made["id"],
        "name": "retries",
        "description": "Flows of production retry.",
        "severity": "warn",
        "expression": "has(flow.on_error)",
        "message": "say on_error",
        "environmentIds": [production],
        "enabled": false,
        "builtin": false,
        "createdAt": made["createdAt"],
        "updatedAt": made["createdAt"],
        "etag": "1",
    });
    assert_eq!(made, expected);
    app.api
        .post(PATH, &body)
        .await
        .expect_error(409, "ALREADY_EXISTS");
}

#[tokio::test]
async fn a_policy_denies_everywhere_unless_it_says_otherwise() {
    let app = TestApp::start().await;
    let made = policy(&app.api, "plain").await;
    assert_eq!(made["severity"], "deny");
    assert_eq!(made["enabled"], true);
    assert_eq!(made["environmentIds"], json!([]));
    assert_eq!(app.api.get(&path_of(&made)).await.expect(200), made);
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let app = TestApp::start().await;
    for (field, value) in [
        ("name", json!("")),
        ("expression", json!(" ")),
        ("expression", json!("true || ".repeat(513))),
        ("severity", json!("block")),
        ("environmentIds[0]", json!(["env_1"])),
        ("environmentIds[0]", json!(["production"])),
        ("builtin", json!(true)),
    ] {
        let mut body = json!({"name": "wrong", "expression": "true"});
        body[field.trim_end_matches("[0]")] = value;
        let answer = app.api.post(PATH, &body).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field, "{body}");
    }
    let answer = app.api.post(PATH, &json!({"name": "x"})).await;
    let details = answer.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "expression");
    let list = app.api.get(PATH).await.expect(200);
    assert_eq!(list["pagination"]["total"], 0);
}

#[tokio::test]
async fn admins_of_the_whole_account_make_policies() {
    let app = TestApp::start().await;
    let body = json!({"name": "x", "expression": "true"});
    for (role, environment) in [("editor", None), ("admin", Some("production"))] {
        let api = as_role(&app, role, environment).await;
        let answer = api.post(PATH, &body).await;
        answer.expect_error(403, "PERMISSION_DENIED");
    }
    let admin = as_role(&app, "admin", None).await;
    admin.post(PATH, &body).await.expect(201);
}

#[tokio::test]
async fn a_repeated_call_makes_one_policy() {
    let app = TestApp::start().await;
    let api = app.api.with_header("idempotency-key", "once");
    let first = policy(&api, "once").await;
    assert_eq!(policy(&api, "once").await, first);
    let list = app.api.get(PATH).await.expect(200);
    assert_eq!(list["pagination"]["total"], 1);
}
