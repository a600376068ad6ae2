//! `PUT`, `POST` and `DELETE /lookup-tables/{id}/entries`: one request is one modification.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::table;

#[tokio::test]
async fn each_request_is_one_step_of_the_version() {
    let app = TestApp::start().await;
    let path = table(&app.api, "steps", &[]).await;
    let many = json!({"entries": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]});
    let put = app.api.put(&format!("{path}/entries"), &many).await.expect(200);
    assert_eq!((&put["entries_count"], &put["version"]), (&json!(2), &json!(2)));
    let again = json!({"entries": [{"key": "b", "value": "3"}, {"key": "c", "value": "4"}]});
    let put = app.api.put(&format!("{path}/entries"), &again).await.expect(200);
    assert_eq!((&put["entries_count"], &put["version"]), (&json!(3), &json!(3)));
    let set = app.api.post(&format!("{path}/entries"), &json!({"key": "a/b?", "value": "5"})).await;
    assert!(set.status == 200 || set.status == 201, "{}", set.text);
    assert_eq!(app.api.delete(&format!("{path}/entries/a%2Fb%3F")).await.status, 204);
    app.api.delete(&format!("{path}/entries/nobody")).await.expect_error(404, "NOT_FOUND");
    let read = app.api.get(&path).await.expect(200);
    assert_eq!(read["version"], 5);
    let entries = json!([{"key": "a", "value": "1"}, {"key": "b", "value": "3"}, {"key": "c", "value": "4"}]);
    assert_eq!(read["entries"], entries);
    let wrong =
        app.api.put(&format!("{path}/entries"), &json!({"entries": [{"key": "x", "value": "1"}, {"key": 7}]})).await;
    assert_eq!(wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"], "entries[1].key");
}

#[tokio::test]
async fn a_changed_entry_is_live_with_the_next_message() {
    let (app, target) = (TestApp::start().await, FakeTarget::start().await);
    app.api.http_instance("erp", &target.url()).await;
    let path = table(&app.api, "codes", &[("DE", "276")]).await;
    let yaml = "flow: looks\nversion: 1\nsource:\n  trigger: webhook\ntarget:\n  connector: erp\n  endpoint: /in\n  method: POST\nmapping:\n  code: source.c | lookup(codes, ZZ)\n";
    let (_, url) = app.api.deployed(yaml).await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    target.arrivals(1).await;
    app.api.post(&format!("{path}/entries"), &json!({"key": "DE", "value": "DEU"})).await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    target.arrivals(2).await;
    app.api.delete(&format!("{path}/entries/DE")).await;
    app.api.webhook(&url, &json!({"c": "DE"})).await;
    let codes: Vec<_> = target.arrivals(3).await.iter().map(|r| r.json()["code"].clone()).collect();
    assert_eq!(codes, ["276", "DEU", "ZZ"]);
}
