//! Answers: names, defaults, JSON in place, tags and headers.

use http::StatusCode;

use crate::echo::{call, get};

#[tokio::test]
async fn writes_fields_by_their_json_names_with_defaults() {
    let answer = call(
        "POST",
        "/api/v1/lookup-tables",
        &[],
        r#"{"name":"eu \"ä\"\u0001"}"#,
    )
    .await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.header("content-type"), "application/json");
    let expect = concat!(
        r#"{"id":"lt_1","name":"eu \"ä\"\u0001","description":"none","version":1,"#,
        r#""created_at":"2026-01-31T08:15:00.123Z","updated_at":"","entries_count":0,"#,
        r#""entries":[],"etag":""}"#
    );
    assert_eq!(answer.text, expect);
}

#[tokio::test]
async fn leaves_out_what_is_absent() {
    let flow = get("/api/v1/flows/flw_1").await.json();
    let flow = flow.as_object().unwrap();
    for absent in ["webhookUrl", "config", "plan"] {
        assert!(!flow.contains_key(absent), "{absent}");
    }
    assert_eq!(flow["warnings"], serde_json::json!([]));
}

#[tokio::test]
async fn writes_null_for_an_absent_field_that_is_marked() {
    let flow = get("/api/v1/flows/flw_1").await.json();
    assert_eq!(flow.get("deployedVersion"), Some(&serde_json::Value::Null));
    assert_eq!(flow.get("lastError"), Some(&serde_json::Value::Null));
}

#[tokio::test]
async fn writes_the_value_of_a_marked_field_that_is_there() {
    let flow = call("POST", "/api/v1/flows/flw_1/deploy", &[], "{}")
        .await
        .json();
    assert_eq!(flow["deployedVersion"], 7);
}

#[tokio::test]
async fn keeps_digits_and_key_order_of_json_in_place() {
    let message = get("/api/v1/messages/msg_1").await;
    assert!(
        message
            .text
            .contains(r#""payload":{"b":1.10,"a":[9007199254740993,1e400]}"#),
        "{}",
        message.text
    );
    for json in [
        "{\"z\":1.10,\"a\":{\"b\":1E+400}}",
        "null",
        "\"text\"",
        "[1,-0.0,12345678901234567890]",
        "{\"a\":1,\"a\":2}",
    ] {
        let answer = call(
            "POST",
            "/api/v1/flows/flw_1/test",
            &[],
            format!("{{\"sampleData\": {json}}}"),
        )
        .await;
        assert_eq!(
            answer.text,
            format!(r#"{{"output":{json},"errors":[],"trace":[],"matched":true}}"#)
        );
    }
    let absent = call("POST", "/api/v1/flows/flw_1/test", &[], "{}").await;
    assert_eq!(absent.text, r#"{"errors":[],"trace":[],"matched":true}"#);
}

#[tokio::test]
async fn a_tag_makes_a_second_read_cheap() {
    let path = "/api/v1/lookup-tables/lt_1";
    assert_eq!(get(path).await.header("etag"), "\"tag-7\"");
    let same = call("GET", path, &[("if-none-match", "\"tag-7\"")], "").await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    assert_eq!(same.text.as_str(), "");
    assert_eq!(same.header("etag"), "\"tag-7\"");
    assert_eq!(
        call("GET", path, &[("if-none-match", "\"tag-6\"")], "")
            .await
            .status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn hands_on_the_headers_that_services_read_and_no_others() {
    let headers = [
        ("x-environment", "staging"),
        ("idempotency-key", "k1"),
        ("if-match", "\"tag-7\""),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("x-request-id", "mine-1"),
        ("cookie", "secret"),
        ("x-forwarded-for", "10.0.0.1"),
    ];
    let answer = call("GET", "/api/v1/lookup-tables/lt_1", &headers, "").await;
    assert_eq!(answer.header("x-request-id"), "mine-1");
    let body = answer.json();
    let entries = body["entries"].as_array().unwrap();
    let value = |name: &str| {
        entries
            .iter()
            .find(|e| e["key"] == name)
            .map(|e| e["value"].as_str().unwrap().to_owned())
    };
    assert_eq!(value("authorization").as_deref(), Some("Bearer key"));
    assert_eq!(value("x-environment").as_deref(), Some("staging"));
    assert_eq!(value("idempotency-key").as_deref(), Some("k1"));
    assert_eq!(value("if-match").as_deref(), Some("tag-7"));
    assert_eq!(value("x-request-id").as_deref(), Some("mine-1"));
    assert!(value("traceparent").is_some());
    assert_eq!(value("cookie"), None);
    assert_eq!(value("x-forwarded-for"), None);
}

#[tokio::test]
async fn a_text_field_that_is_there_is_the_whole_answer() {
    let graph = get("/api/v1/flows/flw_1/plan").await;
    assert_eq!(graph.header("content-type"), "application/json");
    assert_eq!(
        graph.text.as_str(),
        r#"{"nodes":[],"edges":[],"variables":[]}"#
    );
    let drawing = get("/api/v1/flows/flw_1/plan?format=mermaid").await;
    assert_eq!(drawing.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(drawing.text.as_str(), "graph LR");
}

#[tokio::test]
async fn no_content_has_no_body() {
    let answer = call("DELETE", "/api/v1/lookup-tables/lt_1", &[], "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(answer.text.as_str(), "");
    assert_eq!(answer.header("content-type"), "");
}
