//! `DELETE /environments/{id}`.

use kanat_tests::rest::text;
use kanat_tests::split::Split;
use kanat_tests::{Rest, TestApp};
use serde_json::json;

const PATH: &str = "/api/v1/environments";

#[tokio::test]
async fn an_empty_environment_is_deleted_and_its_name_is_free_again() {
    let app = TestApp::start().await;
    let body = json!({"name": "canary", "baseUrl": "https://canary.example.com"});
    let made = app.api.post(PATH, &body).await.expect(201);
    let one = format!("{PATH}/{}", text(&made["id"]));
    app.api
        .with_header("if-match", "\"7\"")
        .delete(&one)
        .await
        .expect_error(409, "ABORTED");
    app.api.delete(&one).await.expect(204);
    app.api.get(&one).await.expect_error(404, "NOT_FOUND");
    app.api.delete(&one).await.expect_error(404, "NOT_FOUND");
    app.api
        .with_header("x-environment", "canary")
        .get("/api/v1/flows")
        .await
        .expect_error(404, "NOT_FOUND");
    let all = app.api.get(PATH).await.expect(200);
    assert_eq!(all["pagination"]["total"], 3);
    let again = app.api.post(PATH, &body).await.expect(201);
    assert_ne!(again["id"], made["id"]);
}

/// Makes a flow in an environment while the environment is deleted; one of the two succeeds.
async fn one_of_two_succeeds(maker: &Rest, remover: &Rest, round: usize) {
    let name = format!("short-{round}");
    let made = remover.post(PATH, &json!({"name": name})).await.expect(201);
    let path = format!("{PATH}/{}", text(&made["id"]));
    let inside = maker.with_header("x-environment", &name);
    let flow = json!({"name": "late", "yamlConfig": crate::webhook::passthrough("late")});
    let (kept, removed) = tokio::join!(inside.post("/api/v1/flows", &flow), remover.delete(&path));
    let outcome = [kept.status, removed.status];
    assert!(
        [[201, 400], [404, 204]].contains(&outcome),
        "{outcome:?} {}",
        kept.text
    );
}

#[tokio::test]
async fn nothing_is_made_in_an_environment_that_ends() {
    let app = TestApp::start().await;
    for round in 0..10 {
        one_of_two_succeeds(&app.api, &app.api, round).await;
    }
    let split = Split::new();
    let one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    for round in 0..10 {
        one_of_two_succeeds(&one.api, &other.api, round).await;
    }
}

#[tokio::test]
async fn what_is_in_an_environment_keeps_it() {
    let app = TestApp::start().await;
    let default = app.api.delete(&format!("{PATH}/development")).await;
    assert!(default.text.contains("default"), "{}", default.text);
    default.expect_error(400, "FAILED_PRECONDITION");

    let staging = app.api.with_header("x-environment", "staging");
    let table = json!({"name": "countries"});
    let table = staging.post("/api/v1/lookup-tables", &table).await;
    let table = text(&table.expect(201)["id"]);
    let flow = staging.flow(&crate::published_api::quote("quotes")).await;
    let key = json!({"name": "bound", "environmentId": "staging"});
    let key = app.api.post("/api/v1/api-keys", &key).await.expect(201);
    let one = format!("{PATH}/staging");
    let refused = app.api.delete(&one).await;
    let contents = "flows (1), lookup tables (1), API keys (1)";
    assert!(refused.text.contains(contents), "{}", refused.text);
    refused.expect_error(400, "FAILED_PRECONDITION");

    for path in [
        format!("/api/v1/lookup-tables/{table}"),
        format!("/api/v1/flows/{flow}"),
        format!("/api/v1/api-keys/{}", text(&key["id"])),
    ] {
        staging.delete(&path).await.expect(204);
    }
    let editor = json!({"name": "editor", "role": "editor"});
    let editor = app.api.post("/api/v1/api-keys", &editor).await.expect(201);
    let editor = app.api.with_key(&text(&editor["key"]));
    editor
        .delete(&one)
        .await
        .expect_error(403, "PERMISSION_DENIED");
    app.api.delete(&one).await.expect(204);
}

#[tokio::test]
async fn nodes_leave_a_deleted_environment_and_go_on_with_the_others() {
    let split = Split::new();
    let control = split.control_plane("one").await;
    let node = split.node("a", &[&control]).await;
    control
        .api
        .delete(&format!("{PATH}/staging"))
        .await
        .expect(204);
    kanat_tests::until("the node leaves it", || async {
        let nodes = control.api.get("/api/v1/nodes").await.expect(200);
        let environments = nodes["data"][0]["environments"].as_array()?;
        (environments.len() == 2).then_some(())
    })
    .await;
    let token = control
        .api
        .deployed(&crate::published_api::quote("quotes"))
        .await;
    assert!(!token.0.is_empty());
    assert!(!node.base.is_empty());
}
