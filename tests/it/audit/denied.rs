//! Calls that their callers may not make.

use kanat_tests::rest::text;
use kanat_tests::{Service, on_both_databases};
use serde_json::json;

use super::{entries, entry, key};

on_both_databases!(
    Service;
    a_denied_call_has_an_entry_with_what_its_path_names,
    beyond_ten_in_a_minute_they_share_an_entry,
);

async fn a_denied_call_has_an_entry_with_what_its_path_names(service: &Service) {
    let api = service.api();
    let (id, viewer) = key(service, "viewer", None).await;
    let denied = viewer.post("/api/v1/flows/flw_1/deploy", &json!({})).await;
    denied.expect_error(403, "PERMISSION_DENIED");
    let told = entry(api, &format!("status=denied&userId={id}")).await;
    assert_eq!(told["action"], "flow.deploy");
    assert_eq!(told["entityId"], "flw_1");
    assert_eq!(told["actor"]["role"], "viewer");
    assert_eq!(told["calls"], 1);
    assert!(told.get("after").is_none(), "{told}");

    // By its binding, and by a rule of the use-case.
    let (id, bound) = key(service, "admin", Some("staging")).await;
    let elsewhere = bound.with_header("x-environment", "production");
    elsewhere
        .get("/api/v1/flows")
        .await
        .expect_error(403, "PERMISSION_DENIED");
    let whole = json!({"name": "x", "expression": "true"});
    let policy = bound.post("/api/v1/governance/policies", &whole).await;
    policy.expect_error(403, "PERMISSION_DENIED");
    let told = entries(api, &format!("status=denied&userId={id}")).await;
    let actions: Vec<_> = told.iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["policy.create", "flow.list"]);
}

async fn beyond_ten_in_a_minute_they_share_an_entry(service: &mut Service) {
    let viewer = json!({"name": "viewer", "role": "viewer"});
    let viewer = service.api().post("/api/v1/api-keys", &viewer).await;
    let viewer = text(&viewer.expect(201)["key"]);
    let planes = [service.api(), service.elsewhere()].map(|api| api.with_key(&viewer));
    for n in 0..14 {
        let table = json!({"name": "t"});
        let denied = planes[n % 2].post("/api/v1/lookup-tables", &table).await;
        denied.expect_error(403, "PERMISSION_DENIED");
    }
    let told = entries(service.api(), "status=denied").await;
    assert_eq!(told.len(), 10);
    // The end of the process ends the minute.
    service.restart_with(&[]).await;
    let told = entries(service.api(), "status=denied").await;
    let counts = told.iter().map(|entry| entry["calls"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 14);
    assert!(told.len() <= 12, "one count a process: {told:?}");
}
