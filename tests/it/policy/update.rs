//! `PUT` and `PATCH /governance/policies/{id}`.

use kanat_tests::{Rest, TestApp};
use serde_json::json;

use super::{as_role, path_of, policy};

#[tokio::test]
async fn what_is_left_out_stays_and_a_read_can_be_sent_back() {
    let app = TestApp::start().await;
    let made = policy(&app.api, "retries").await;
    let path = path_of(&made);
    let environments = app.api.get("/api/v1/environments").await.expect(200);
    let production = &environments["data"][2]["id"];
    let body = json!({
        "description": "d",
        "message": "m",
        "severity": "warn",
        "environmentIds": [production],
        "enabled": false,
    });
    let changed = app.api.patch(&path, &body).await.expect(200);
    assert_eq!(changed["name"], "retries");
    assert_eq!(changed["expression"], made["expression"]);
    assert_eq!(changed["severity"], "warn");
    assert_eq!(changed["environmentIds"], json!([production]));
    assert_eq!(changed["enabled"], false);
    assert_eq!(changed["etag"], "2");

    let same = app.api.put(&path, &changed).await.expect(200);
    assert_eq!(same, changed);

    let body = json!({"description": null, "message": null, "environmentIds": []});
    let cleared = app.api.patch(&path, &body).await.expect(200);
    assert_eq!(cleared["description"], "");
    assert_eq!(cleared["message"], "");
    assert_eq!(cleared["environmentIds"], json!([]));
}

#[tokio::test]
async fn a_wrong_change_is_refused_and_nothing_is_changed() {
    let app = TestApp::start().await;
    let made = policy(&app.api, "retries").await;
    policy(&app.api, "taken").await;
    let path = path_of(&made);
    for (field, body) in [
        ("name", json!({"name": " "})),
        ("expression", json!({"expression": ""})),
        ("severity", json!({"severity": "DENY"})),
        ("environmentIds", json!({"environmentIds": "production"})),
        ("environmentIds", json!({"environmentIds": {}})),
        ("environmentIds[0]", json!({"environmentIds": ["env_1"]})),
    ] {
        let answer = app.api.patch(&path, &body).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field, "{body}");
    }
    app.api
        .patch(&path, &json!({"name": "taken"}))
        .await
        .expect_error(409, "ALREADY_EXISTS");
    let editor = as_role(&app, "editor", None).await;
    editor
        .patch(&path, &json!({"enabled": false}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    assert_eq!(app.api.get(&path).await.expect(200), made);
}

#[tokio::test]
async fn a_lost_update_is_refused() {
    let app = TestApp::start().await;
    let path = path_of(&policy(&app.api, "retries").await);
    let change = async |etag: &str, severity: &str| {
        let request = app.api.request("PATCH", &path).header("if-match", etag);
        Rest::send(request.json(&json!({"severity": severity}))).await
    };
    change("\"1\"", "warn").await.expect(200);
    change("\"1\"", "deny").await.expect_error(409, "ABORTED");
    change("\"2\"", "deny").await.expect(200);
}
