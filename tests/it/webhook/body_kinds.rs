//! Every kind of body becomes a payload.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

use super::passthrough;

const MAPPED: &str = r"flow: kinds
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  payload: source
";

#[tokio::test]
async fn json_forms_text_and_bytes_become_payloads() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(MAPPED).await;
    let cases: &[(&str, &[u8], Value)] = &[
        ("application/json", br#"{"a":[1,2]}"#, json!({"a": [1, 2]})),
        ("application/vnd.shop+json; charset=utf-8", b"[]", json!([])),
        ("application/json", b"", Value::Null),
        (
            "application/x-www-form-urlencoded",
            b"a=1&b=x+y&b=%C3%A4",
            json!({"a": "1", "b": ["x y", "\u{e4}"]}),
        ),
        ("text/plain", b"hello \"you\"", json!("hello \"you\"")),
        ("application/xml", b"<a/>", json!("<a/>")),
        (
            "application/octet-stream",
            &[0, 255, 1],
            json!({"base64": "AP8B"}),
        ),
    ];
    for (at, (content_type, body, expected)) in cases.iter().enumerate() {
        let answer = app
            .api
            .without_key()
            .raw("POST", &url, content_type, body.to_vec())
            .await
            .expect(202);
        let id = answer["messageId"].as_str().unwrap();
        app.api.message_becomes(id, "delivered").await;
        let delivered = target.received()[at].json();
        let expected = if expected.is_null() {
            json!({"payload": null})
        } else {
            json!({ "payload": expected })
        };
        assert_eq!(delivered, expected, "{content_type}");
    }
}

#[tokio::test]
async fn without_a_mapping_the_body_goes_out_byte_for_byte() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("bytes")).await;
    let body = "{ \"big\": 9007199254740993,\n \"d\": 1.10, \"e\": 1e400, \"z\": 1, \"a\": 2 }";
    app.api
        .without_key()
        .raw("POST", &url, "application/json", body)
        .await
        .expect(202);
    let received = target.arrivals(1).await;
    assert_eq!(received[0].body, body.as_bytes());
    assert_eq!(received[0].header("content-type"), "application/json");
    assert!(received[0].header("idempotency-key").starts_with("msg_"));
    assert!(received[0].header("traceparent").starts_with("00-"));
}

#[tokio::test]
async fn a_callers_trace_is_continued_to_the_target() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("traced")).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let caller = app
        .api
        .without_key()
        .with_header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    caller.post(&url, &json!({})).await.expect(202);
    let received = target.arrivals(1).await;
    assert!(
        received[0].header("traceparent").contains(trace),
        "{:?}",
        received[0].headers
    );
    assert!(
        !received[0]
            .header("traceparent")
            .contains("00f067aa0ba902b7"),
        "the span is a new one"
    );
}
