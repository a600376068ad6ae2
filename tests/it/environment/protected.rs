//! Protected environments: editors run what is in them, and change nothing.

use kanat_tests::rest::text;
use kanat_tests::{FakeTarget, Rest, Service, on_both_databases};
use serde_json::{Value, json};

use crate::webhook::passthrough;

on_both_databases!(
    Service;
    editors_change_nothing_in_a_protected_environment_and_run_what_is_there,
    protection_and_promoters_are_fields_like_others,
);

/// Calls that change what an environment runs, with `FLOW` and `SCHEDULE` in place of ids. They are
/// refused before anything is looked for, so that the other ids need not exist.
const CHANGES: &[(&str, &str)] = &[
    ("POST", "/flows"),
    ("PUT", "/flows/FLOW"),
    ("PATCH", "/flows/FLOW"),
    ("POST", "/flows/FLOW/deploy"),
    ("POST", "/flows/FLOW/rollback"),
    ("POST", "/flows/FLOW/pause"),
    ("POST", "/flows/FLOW/resume"),
    ("POST", "/flows/FLOW/rotate-webhook-token"),
    ("DELETE", "/flows/FLOW"),
    ("POST", "/lookup-tables"),
    ("POST", "/lookup-tables/lt_1/entries"),
    ("PUT", "/lookup-tables/lt_1/entries"),
    ("DELETE", "/lookup-tables/lt_1/entries/a"),
    ("DELETE", "/lookup-tables/lt_1"),
    ("POST", "/adapters"),
    ("PUT", "/adapters/adp_1"),
    ("DELETE", "/adapters/adp_1"),
    ("POST", "/connectors/instances"),
    ("PATCH", "/connectors/instances/ci_1"),
    ("DELETE", "/connectors/instances/ci_1"),
    ("POST", "/published-apis"),
    ("PUT", "/published-apis/api_1"),
    ("DELETE", "/published-apis/api_1"),
    ("POST", "/published-apis/api_1/versions"),
    ("POST", "/published-apis/api_1/keys"),
    ("PUT", "/schedules/SCHEDULE"),
];

async fn send(api: &Rest, method: &str, path: &str) -> kanat_tests::Answer {
    let request = api.request(method, &format!("/api/v1{path}"));
    Rest::send(request.json(&json!({}))).await
}

async fn editors_change_nothing_in_a_protected_environment_and_run_what_is_there(
    service: &Service,
) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let target = FakeTarget::start().await;
    service.nodes().await;
    let body = json!({"protected": true, "promoters": "admin"});
    let made = api
        .patch("/api/v1/environments/production", &body)
        .await
        .expect(200);
    assert_eq!(made["protected"], true);
    assert_eq!(made["promoters"], "admin");
    let owner = api.with_header("x-environment", "production");
    owner.http_instance("erp", &target.url()).await;
    let (flow, url) = owner.deployed(&passthrough("orders")).await;
    let webhook = &service.webhooks(&url).await[0];
    let message = owner.webhook(webhook, &json!({"total": 1})).await;
    owner.message_becomes(&message, "delivered").await;

    let body = json!({"name": "editor", "role": "editor"});
    let key = api.post("/api/v1/api-keys", &body).await.expect(201);
    let anywhere = elsewhere.with_key(&text(&key["key"]));
    let editor = anywhere.with_header("x-environment", "production");
    for (method, path) in CHANGES {
        let path = path.replace("FLOW", &flow).replace("SCHEDULE", "sch_1");
        let answer = send(&editor, method, &path).await;
        assert!(answer.text.contains("protected"), "{method} {path}");
        answer.expect_error(403, "PERMISSION_DENIED");
    }

    let denied = "/api/v1/audit-log?status=denied&action=flow.deploy";
    let denied = &elsewhere.get(denied).await.expect(200)["data"][0];
    assert_eq!(denied["entityId"], json!(flow));

    // Reading, testing, running and replaying are no changes.
    let at = |path: &str| format!("/api/v1{path}");
    let one = at(&format!("/flows/{flow}"));
    assert_eq!(editor.get(&one).await.expect(200)["status"], "active");
    let sample = json!({"sampleData": {"total": 2}});
    editor
        .post(&format!("{one}/test"), &sample)
        .await
        .expect(200);
    let payload = json!({"payload": {"total": 3}});
    editor
        .post(&format!("{one}/run"), &payload)
        .await
        .expect(202);
    let replay = at(&format!("/messages/{message}/replay"));
    editor.post(&replay, &json!({})).await.expect(202);

    // The environment of the call counts, and an admin may change every one.
    let table = json!({"name": "countries"});
    let tables = at("/lookup-tables");
    anywhere.post(&tables, &table).await.expect(201);
    owner.post(&tables, &table).await.expect(201);
    let open = json!({"protected": false});
    api.put("/api/v1/environments/production", &open)
        .await
        .expect(200);
    editor
        .post(&tables, &json!({"name": "cities"}))
        .await
        .expect(201);
}

async fn protection_and_promoters_are_fields_like_others(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let path = "/api/v1/environments";
    let body = json!({"name": "canary", "protected": true});
    let made = api.post(path, &body).await.expect(201);
    assert_eq!(made["protected"], true);
    assert_eq!(made["promoters"], "editor");
    let one = format!("{path}/canary");
    let renamed = elsewhere.patch(&one, &json!({"name": "early"})).await;
    assert_eq!(renamed.expect(200)["protected"], true);
    let plain = elsewhere.get(&format!("{path}/staging")).await.expect(200);
    assert_eq!(plain["protected"], Value::Bool(false));
    for (body, field) in [
        (json!({"promoters": "viewer"}), "promoters"),
        (json!({"protected": "yes"}), "protected"),
    ] {
        let answer = api.patch(&format!("{path}/early"), &body).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field);
    }
}
