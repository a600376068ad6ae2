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

#[tokio::test]
async fn steps_are_shown_and_not_called() {
    let app = TestApp::start().await;
    let (desk, mail, erp) = (FakeTarget::start().await, FakeTarget::start().await, FakeTarget::start().await);
    crate::steps::instances(&app.api, &desk, &mail, &erp).await;
    let id = app.api.flow(crate::steps::FLOW).await;
    let path = format!("/api/v1/flows/{id}/test");
    let sample = json!({"sampleData": {"name": "Ann", "email": "a@b.example"}});
    let answer = app.api.post(&path, &sample).await;
    assert!(!answer.text.contains("s3cr3t"), "{}", answer.text);
    let body = answer.expect(200);
    let entries = body["trace"].as_array().unwrap();
    let steps: Vec<_> = entries.iter().filter(|entry| entry["stage"] == "step").collect();
    let names: Vec<_> = steps.iter().map(|entry| (&entry["name"], &entry["status"])).collect();
    assert_eq!(names, [(&json!("contact"), &json!("skipped")), (&json!("ticket"), &json!("skipped"))], "{body}");
    assert_eq!(steps[0]["request"]["method"], "PUT");
    assert_eq!(steps[0]["request"]["url"], format!("{}/v3/marketing/contacts", mail.url()));
    assert_eq!(steps[0]["request"]["body"], json!({"contacts": [{"email": "a@b.example"}]}));
    // What an earlier step would have answered is missing, and its text empty.
    assert_eq!(steps[1]["request"]["body"]["ticket"]["subject"], "Welcome Ann");
    assert_eq!(body["output"], json!({"email": "a@b.example"}));
    let wrong =
        app.api.post(&path, &json!({"sampleData": {"name": "Ann", "email": {"not": "a text"}}})).await.expect(200);
    let contact = wrong["trace"].as_array().unwrap().iter().find(|entry| entry["stage"] == "step").unwrap();
    assert_eq!(contact["status"], "failed");
    assert!(contact["error"].as_str().unwrap().contains("steps.contact.params.contacts[0].email"), "{contact}");
    assert!(desk.received().is_empty() && mail.received().is_empty() && erp.received().is_empty());
}
