//! Traces at an OpenTelemetry collector: a message's spans stand under its sender's, and its
//! target's under them.

use std::collections::HashMap;

use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::{Value, json};

use crate::webhook::passthrough;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// Every span that reached the collector.
fn spans(collector: &FakeTarget) -> Vec<Value> {
    let requests = collector
        .received()
        .into_iter()
        .filter(|request| request.path == "/v1/traces");
    requests
        .flat_map(|r| {
            r.json()["resourceSpans"][0]["scopeSpans"][0]["spans"]
                .as_array()
                .unwrap()
                .clone()
        })
        .collect()
}

#[tokio::test]
async fn webhook_runs_and_calls_are_spans_of_the_senders_trace() {
    let collector = FakeTarget::start().await;
    let app = TestApp::start_with(&[("KANAT_OTLP_ENDPOINT", &collector.url())]).await;
    let target =
        FakeTarget::scripted(|_, earlier| if earlier == 0 { status(503) } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let flow = format!(
        "{}on_error:\n  retry: 2x fixed(20ms)\n",
        passthrough("traced")
    );
    let (flow, url) = app.api.deployed(&flow).await;
    let sender = app
        .api
        .without_key()
        .with_header("traceparent", &format!("00-{TRACE}-{CALLER}-01"));
    let sender = sender.with_header("tracestate", "vendor=a:1,other=b");
    let id = sender.post(&url, &json!({})).await.expect(202)["messageId"]
        .as_str()
        .unwrap()
        .to_owned();
    app.api.message_becomes(&id, "delivered").await;

    let spans = until("five spans are exported", || async {
        let spans = spans(&collector);
        (spans.len() >= 5).then_some(spans)
    })
    .await;
    assert!(
        spans.iter().all(|span| span["traceId"] == TRACE),
        "{spans:?}"
    );
    let ids: HashMap<&str, &Value> = spans
        .iter()
        .map(|span| (span["spanId"].as_str().unwrap(), span))
        .collect();
    let named = |name: &str| {
        spans
            .iter()
            .filter(|span| span["name"] == name)
            .cloned()
            .collect::<Vec<_>>()
    };
    let parent = |span: &Value| ids[span["parentSpanId"].as_str().unwrap()]["name"].clone();

    let [webhook] = &named("webhook")[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(webhook["parentSpanId"], CALLER);
    let about = webhook["attributes"].as_array().unwrap();
    for (key, value) in [("kanat.message.id", &id), ("kanat.flow.id", &flow)] {
        assert!(
            about.contains(&json!({ "key": key, "value": { "stringValue": value } })),
            "{about:?}"
        );
    }
    let runs = named("run");
    let calls = named("delivery");
    assert_eq!(runs.len(), 2, "{spans:?}");
    assert_eq!(calls.len(), 2, "{spans:?}");
    assert!(
        runs.iter().all(|run| parent(run) == "webhook")
            && calls.iter().all(|call| parent(call) == "run")
    );
    assert_eq!(
        calls
            .iter()
            .filter(|call| call["status"]["code"] == 2)
            .count(),
        1,
        "the first call failed: {calls:?}"
    );
    // The target is told the span of the call that it is a part of.
    for received in target.received() {
        let told = received
            .header("traceparent")
            .split('-')
            .nth(2)
            .unwrap()
            .to_owned();
        assert_eq!(ids[told.as_str()]["name"], "delivery");
        assert_eq!(received.header("tracestate"), "vendor=a:1,other=b");
    }
}

#[tokio::test]
async fn a_trace_that_its_sender_does_not_sample_is_not_exported_and_the_rest_goes_out_at_the_end()
{
    let collector = FakeTarget::start().await;
    let mut app = TestApp::start_with(&[("KANAT_OTLP_ENDPOINT", &collector.url())]).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("sampled")).await;
    for traceparent in [
        format!("00-{TRACE}-{CALLER}-00"),
        format!("00-{TRACE}-{CALLER}-01"),
    ] {
        let sender = app
            .api
            .without_key()
            .with_header("traceparent", &traceparent);
        let id = sender.post(&url, &json!({})).await.expect(202)["messageId"]
            .as_str()
            .unwrap()
            .to_owned();
        app.api.message_becomes(&id, "delivered").await;
    }
    assert_eq!(app.terminate().await, Some(0), "{}", app.log());
    let spans = spans(&collector);
    assert_eq!(spans.len(), 3, "{spans:?}");
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_nothing_up() {
    let app = TestApp::start_with(&[("KANAT_OTLP_ENDPOINT", "http://127.0.0.1:9")]).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("untraced")).await;
    let id = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&id, "delivered").await;
    until("it is said", || async {
        app.log().contains("traces cannot be sent").then_some(())
    })
    .await;
}
