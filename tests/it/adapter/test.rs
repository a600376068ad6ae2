//! `POST /adapters/{id}/test`: output, logs and errors, as nodes would have them.

use kanat_tests::TestApp;
use serde_json::json;

use super::adapter;

#[tokio::test]
async fn gives_output_and_logs() {
    let app = TestApp::start().await;
    let code = "function transform(input, context) {\n  console.log('got', input.id);\n  \
                console.warn({ test: context.test });\n  return { ...input, n: input.n * 2 };\n}";
    let path = format!("{}/test", adapter(&app.api, "x", "transform", code).await);
    let sample = r#"{"input": {"id": 9007199254740993, "price": 1.10, "n": 21}}"#;
    let answer = app.api.raw("POST", &path, "application/json", sample).await;
    assert!(
        answer
            .text
            .contains(r#""output":{"id":9007199254740993,"price":1.10,"n":42}"#),
        "{}",
        answer.text
    );
    let body = answer.expect(200);
    assert_eq!(
        body["logs"],
        json!(["got 9007199254740992", "warn: {\"test\":true}"])
    );
    assert_eq!(body.get("error"), None);
    app.api
        .post(&path, &json!({}))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    let path = format!(
        "{}/test",
        adapter(&app.api, "none", "transform", "function transform() {}").await
    );
    let body = app.api.post(&path, &json!({"input": {}})).await.expect(200);
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("the adapter gave undefined"),
        "{body}"
    );
}

#[tokio::test]
async fn an_error_names_line_and_column_and_keeps_the_logs() {
    let app = TestApp::start().await;
    let code = "function transform(input) {\n  console.log('before');\n  return input.a.b;\n}";
    let path = format!("{}/test", adapter(&app.api, "x", "transform", code).await);
    let body = app.api.post(&path, &json!({"input": {}})).await.expect(200);
    assert_eq!(body["error"]["line"], 3, "{body}");
    assert!(body["error"]["column"].as_u64().unwrap() > 1, "{body}");
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("cannot read property 'b'"),
        "{body}"
    );
    assert_eq!(body["logs"].clone(), json!(["before"]));
    assert_eq!(body.get("output"), None);
    let fine = app
        .api
        .post(&path, &json!({"input": {"a": {"b": null}}}))
        .await
        .expect(200);
    assert_eq!(fine["output"], json!(null));
}

#[tokio::test]
async fn a_test_of_a_flow_runs_its_adapters() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let code = "function transform(input) {\n  console.log('adapting');\n  return { total: \
                input.price * input.qty };\n}";
    adapter(&app.api, "totals", "transform", code).await;
    adapter(
        &app.api,
        "loud",
        "transform",
        "const transform = (text) => text.toUpperCase()",
    )
    .await;
    let yaml = r#"flow: f
source: {trigger: webhook}
adapter: totals
when: source.total > 1
target: {connector: erp, endpoint: /in}
mapping:
  total: source.total | decimal(2)
  unit: "'eur' | adapter(loud)"
"#;
    let path = format!("/api/v1/flows/{}/test", app.api.flow(yaml).await);
    let body = app
        .api
        .post(&path, &json!({"sampleData": {"price": 1.5, "qty": 3}}))
        .await
        .expect(200);
    assert_eq!(
        &body["output"],
        &json!({"total": "4.50", "unit": "EUR"}),
        "{body}"
    );
    assert_eq!(&body["matched"], &json!(true), "{body}");
    let adapted: Vec<_> = body["trace"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|t| t["stage"] == "adapted")
        .collect();
    assert_eq!(adapted.len(), 2, "{body}");
    assert_eq!(adapted[0]["response"]["logs"], json!(["adapting"]));
    let failed = app
        .api
        .post(&path, &json!({"sampleData": null}))
        .await
        .expect(200);
    assert_eq!(&failed["errors"][0]["kind"], &json!("adapter"));
    assert_eq!(&failed["errors"][0]["field"], &json!("adapter"));
    assert!(
        failed["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("line 3, column "),
        "{failed}"
    );
}
