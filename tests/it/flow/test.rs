//! `POST /flows/{id}/test`: condition and mapping on sample data, nothing delivered.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const FLOW: &str = "flow: tried
version: 1
source:
  trigger: webhook
when: source.total > 0
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  order_id: source.id | required
  total: source.total | decimal(2)
  country: source.country | uppercase | lookup(countries, ZZ)
  lines:
    each: source.items
    map:
      sku: item.sku | uppercase
";

#[tokio::test]
async fn gives_the_output_the_errors_and_whether_the_condition_held() {
    let (app, target) = (TestApp::start().await, FakeTarget::start().await);
    app.api.http_instance("erp", &target.url()).await;
    let table = app.api.post("/api/v1/lookup-tables", &json!({"name": "countries"})).await.expect(201);
    let entries = format!("/api/v1/lookup-tables/{}/entries", table["id"].as_str().unwrap());
    app.api.put(&entries, &json!({"entries": [{"key": "DE", "value": "276"}]})).await.expect(200);
    let id = app.api.flow(FLOW).await;
    let path = format!("/api/v1/flows/{id}/test");

    let sample =
        r#"{"sampleData": {"id": 9007199254740993, "total": 149.5, "country": "de", "items": [{"sku": "a"}]}}"#;
    let answer = app.api.raw("POST", &path, "application/json", sample).await;
    let body = answer.clone().expect(200);
    assert_eq!((&body["matched"], &body["errors"]), (&json!(true), &json!([])));
    let expected = r#"{"order_id":9007199254740993,"total":"149.50","country":"276","lines":[{"sku":"A"}]}"#;
    assert!(answer.text.contains(expected), "{}", answer.text);
    assert!(!body["trace"].as_array().unwrap().is_empty());

    let unmatched = app.api.post(&path, &json!({"sampleData": {"id": 1, "total": 0}})).await.expect(200);
    assert_eq!((&unmatched["matched"], unmatched.get("output")), (&json!(false), None));

    let failing = app.api.post(&path, &json!({"sampleData": {"total": 1}})).await.expect(200);
    assert_eq!(failing["errors"][0]["field"], "order_id");
    assert_eq!(failing["errors"][0]["expression"], "source.id | required");
    assert!(target.received().is_empty());
}
