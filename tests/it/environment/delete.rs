//! `DELETE /environments/{id}`.

use kanat_tests::rest::text;
use kanat_tests::{Rest, Service, on_both_databases};
use serde_json::json;

use crate::published_api::quote;
use crate::webhook::passthrough;

on_both_databases!(
    Service;
    an_empty_environment_is_deleted_and_its_name_is_free_again,
    nothing_is_made_in_an_environment_that_ends,
    what_is_in_an_environment_keeps_it,
    nodes_leave_a_deleted_environment_and_go_on_with_the_others,
);

const PATH: &str = "/api/v1/environments";

async fn an_empty_environment_is_deleted_and_its_name_is_free_again(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let body = json!({"name": "canary", "baseUrl": "https://canary.example.com"});
    let made = api.post(PATH, &body).await.expect(201);
    let one = format!("{PATH}/{}", text(&made["id"]));
    api.with_header("if-match", "\"7\"")
        .delete(&one)
        .await
        .expect_error(409, "ABORTED");
    api.delete(&one).await.expect(204);
    elsewhere.get(&one).await.expect_error(404, "NOT_FOUND");
    api.delete(&one).await.expect_error(404, "NOT_FOUND");
    api.with_header("x-environment", "canary")
        .get("/api/v1/flows")
        .await
        .expect_error(404, "NOT_FOUND");
    let all = elsewhere.get(PATH).await.expect(200);
    assert_eq!(all["pagination"]["total"], 3);
    let again = api.post(PATH, &body).await.expect(201);
    assert_ne!(again["id"], made["id"]);
}

/// Makes something that belongs to an environment or names it, while the environment is deleted;
/// one of the two succeeds.
async fn one_of_two_succeeds(maker: &Rest, remover: &Rest, kind: &str, round: usize) {
    let name = format!("short-{kind}-{round}");
    let made = remover.post(PATH, &json!({"name": name})).await.expect(201);
    let id = text(&made["id"]);
    let (maker, path, body) = match kind {
        "flow" => {
            let flow = json!({"name": "late", "yamlConfig": passthrough("late")});
            let inside = maker.with_header("x-environment", &name);
            (inside, "/api/v1/flows", flow)
        }
        "key" => {
            let key = json!({"name": name, "role": "viewer", "environmentId": id});
            (maker.clone(), "/api/v1/api-keys", key)
        }
        _ => {
            let policy = json!({"name": name, "expression": "true", "environmentIds": [id]});
            (maker.clone(), "/api/v1/governance/policies", policy)
        }
    };
    let removed = format!("{PATH}/{id}");
    let (kept, removed) = tokio::join!(maker.post(path, &body), remover.delete(&removed));
    let outcome = [kept.status, removed.status];
    assert!(
        [[201, 400], [404, 204], [400, 204]].contains(&outcome),
        "{kind}: {outcome:?} {}",
        kept.text
    );
}

async fn nothing_is_made_in_an_environment_that_ends(service: &Service) {
    for round in 0..10 {
        for kind in ["flow", "key", "policy"] {
            one_of_two_succeeds(service.api(), service.elsewhere(), kind, round).await;
        }
    }
}

async fn what_is_in_an_environment_keeps_it(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let default = api.delete(&format!("{PATH}/development")).await;
    assert!(default.text.contains("default"), "{}", default.text);
    default.expect_error(400, "FAILED_PRECONDITION");

    let staging = api.with_header("x-environment", "staging");
    let table = json!({"name": "countries"});
    let table = staging.post("/api/v1/lookup-tables", &table).await;
    let table = text(&table.expect(201)["id"]);
    let flow = staging.flow(&quote("quotes")).await;
    let key = json!({"name": "bound", "environmentId": "staging"});
    let key = api.post("/api/v1/api-keys", &key).await.expect(201);
    let one = format!("{PATH}/staging");
    let refused = elsewhere.delete(&one).await;
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
    let editor = api.post("/api/v1/api-keys", &editor).await.expect(201);
    let editor = elsewhere.with_key(&text(&editor["key"]));
    editor
        .delete(&one)
        .await
        .expect_error(403, "PERMISSION_DENIED");
    elsewhere.delete(&one).await.expect(204);
}

async fn nodes_leave_a_deleted_environment_and_go_on_with_the_others(service: &Service) {
    let api = service.api();
    let count = service.nodes().await.len();
    let staging = format!("{PATH}/staging");
    api.delete(&staging).await.expect(204);
    kanat_tests::until("the nodes leave it", || async {
        let nodes = service.elsewhere().get("/api/v1/nodes").await.expect(200);
        let nodes = nodes["data"].as_array()?;
        let mut environments = nodes.iter().map(|node| node["environments"].as_array());
        let have_left = environments.all(|all| all.is_some_and(|all| all.len() == 2));
        (nodes.len() == count && have_left).then_some(())
    })
    .await;
    let flow = service.api().flow(&quote("quotes")).await;
    let deploy = format!("/api/v1/flows/{flow}/deploy");
    let deployed = service.api().post(&deploy, &json!({})).await;
    assert_eq!(deployed.header("x-config-applied"), "");
    deployed.expect(200);
}
