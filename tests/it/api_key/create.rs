//! `POST /api-keys`: the key shows once, and may do what its role may.

use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::{Value, json};

const KEYS: &str = "/api/v1/api-keys";

async fn key(api: &Rest, body: Value) -> Rest {
    let made = api.post(KEYS, &body).await.expect(201);
    let key = text(&made["key"]);
    assert!(key.starts_with("kanat_ak_"));
    api.with_key(&key)
}

#[tokio::test]
async fn a_key_does_what_its_role_may() {
    let app = TestApp::start().await;
    let viewer = key(&app.api, json!({"name": "looks", "role": "viewer"})).await;
    let editor = key(&app.api, json!({"name": "builds", "role": "editor"})).await;
    viewer.get("/api/v1/flows").await.expect(200);
    let table = json!({"name": "t"});
    viewer
        .post("/api/v1/lookup-tables", &table)
        .await
        .expect_error(403, "PERMISSION_DENIED");
    editor
        .post("/api/v1/lookup-tables", &table)
        .await
        .expect(201);
    editor
        .post(KEYS, &json!({"name": "more"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
}

#[tokio::test]
async fn an_admin_makes_no_owner_and_ends_none_and_nobody_ends_the_last_one() {
    let app = TestApp::start().await;
    let admin = key(&app.api, json!({"name": "runs", "role": "admin"})).await;
    let raised = admin
        .post(KEYS, &json!({"name": "up", "role": "owner"}))
        .await;
    raised.expect_error(403, "PERMISSION_DENIED");
    key(&admin, json!({"name": "builds", "role": "editor"})).await;
    let keys = app.api.get(KEYS).await.expect(200);
    let keys = keys["data"].as_array().unwrap();
    let owner = keys.iter().find(|key| key["role"] == "owner").unwrap();
    let owner = format!("{KEYS}/{}", text(&owner["id"]));
    let ended = admin.delete(&owner).await;
    ended.expect_error(403, "PERMISSION_DENIED");
    let ended = app.api.delete(&owner).await;
    ended.expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn a_key_bound_to_an_environment_stays_there() {
    let app = TestApp::start().await;
    let environments = app.api.get("/api/v1/environments").await.expect(200);
    let environments = environments["data"].as_array().unwrap();
    let id_of = |name: &str| {
        let environment = environments.iter().find(|found| found["name"] == name);
        text(&environment.unwrap()["id"])
    };
    let bound = json!({"name": "bound", "environmentId": id_of("staging")});
    let bound = key(&app.api, bound).await;
    let made = bound
        .post("/api/v1/lookup-tables", &json!({"name": "here"}))
        .await
        .expect(201);
    let path = format!("/api/v1/lookup-tables/{}", text(&made["id"]));
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
    app.api
        .with_header("x-environment", "staging")
        .get(&path)
        .await
        .expect(200);
    let same = bound.with_header("x-environment", "staging");
    same.post("/api/v1/lookup-tables", &json!({"name": "there"}))
        .await
        .expect(201);
    for other in ["production", id_of("development").as_str(), "nowhere"] {
        let elsewhere = bound
            .with_header("x-environment", other)
            .post("/api/v1/lookup-tables", &json!({"name": "x"}))
            .await;
        elsewhere.expect_error(403, "PERMISSION_DENIED");
    }
    let unknown = app
        .api
        .with_header("x-environment", "nowhere")
        .get("/api/v1/lookup-tables")
        .await;
    unknown.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let app = TestApp::start().await;
    for (field, value) in [
        ("name", " "),
        ("role", "king"),
        ("environmentId", "moon"),
        ("expiresAt", "tomorrow"),
        ("expiresAt", "2020-01-01T00:00:00Z"),
    ] {
        let mut body = json!({"name": "x"});
        body[field] = json!(value);
        let answer = app.api.post(KEYS, &body).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field, "{body}");
        assert_eq!(details.as_array().unwrap().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn all_wrong_fields_are_named_at_once() {
    let app = TestApp::start().await;
    let wrong = json!({ "name": "", "role": "nobody", "expiresAt": "tomorrow" });
    let answer = app.api.post("/api/v1/api-keys", &wrong).await;
    let details = answer.expect_error(400, "INVALID_ARGUMENT");
    let fields: Vec<_> = details
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["name", "role", "expiresAt"]);
}

#[tokio::test]
async fn a_key_makes_none_that_lasts_longer_than_itself() {
    let app = TestApp::start().await;
    let end = "2099-01-01T00:00:00.000Z";
    let admin = json!({"name": "admin", "role": "admin", "expiresAt": end});
    let admin = key(&app.api, admin).await;
    let longer = json!({"name": "longer", "expiresAt": "2099-01-01T00:00:01Z"});
    let longer = admin.post(KEYS, &longer).await;
    longer.expect_error(403, "PERMISSION_DENIED");
    let shorter = json!({"name": "shorter", "expiresAt": "2098-01-01T00:00:00Z"});
    let shorter = admin.post(KEYS, &shorter).await.expect(201);
    assert_eq!(shorter["expiresAt"], "2098-01-01T00:00:00.000Z");
    let open = admin.post(KEYS, &json!({"name": "open"})).await.expect(201);
    assert_eq!(open["expiresAt"], end);
    let endless = app.api.post(KEYS, &json!({"name": "endless"})).await;
    assert!(endless.expect(201)["expiresAt"].is_null());
}

#[tokio::test]
async fn a_wrong_key_is_401() {
    let app = TestApp::start().await;
    for wrong in [
        app.api.without_key(),
        app.api.with_key("kanat_ak_wrong"),
        app.api.with_key("x"),
        app.api.with_key(""),
    ] {
        let answer = wrong.get("/api/v1/flows").await;
        assert!(!answer.header("www-authenticate").is_empty());
        answer.expect_error(401, "UNAUTHENTICATED");
    }
}
