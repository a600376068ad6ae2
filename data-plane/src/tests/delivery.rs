//! From the webhook to the target: delivered, retried, given up.

use http::Response;
use kanat_model::message::{ErrorKind, Status};
use kanat_proto::plan::v1::{Field, LookupTable, Mapping, NamedText, Retry, field, lookup_table};

use super::node::{Node, flow};
use super::target::{Target, status};

fn field(name: &str, expression: &str) -> Field {
    Field {
        name: name.to_owned(),
        value: Some(field::Value::Expression(expression.to_owned())),
    }
}

#[tokio::test]
async fn a_webhook_is_mapped_and_delivered() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("orders");
    plan.mapping = Some(Mapping {
        fields: vec![
            field("order_id", "source.id | required"),
            field("total", "source.amount | decimal(2)"),
            field(
                "country",
                "source.country | uppercase | lookup(country_codes, ZZ)",
            ),
        ],
    });
    if let Some(target) = &mut plan.target {
        target.endpoint = "/orders/{{ source.id }}".to_owned();
        target.headers = vec![NamedText {
            name: "X-Source".to_owned(),
            text: "shop".to_owned(),
        }];
    }
    let entry = lookup_table::Entry {
        key: "DE".to_owned(),
        value: "276".to_owned(),
    };
    let table = LookupTable {
        id: "lt_1".into(),
        name: "country_codes".into(),
        version: 1,
        entries: vec![entry],
        ..LookupTable::default()
    };
    node.control.table(&table).await;
    node.deploy(&plan, &target.url).await;

    let id = node
        .accepted("t-orders", r#"{"id":"A/1","amount":149.5,"country":"de"}"#)
        .await;
    let message = node.finished(&id).await;

    let output = r#"{"order_id":"A/1","total":"149.50","country":"276"}"#;
    assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
    assert_eq!(message.attempts, 1, "{:?}", message.error);
    assert_eq!(message.output.as_deref(), Some(output.as_bytes()));
    let [request] = &target.received()[..] else {
        panic!("one request")
    };
    assert_eq!(request.method.as_str(), "POST");
    assert_eq!(request.path.as_str(), "/orders/A%2F1");
    assert_eq!(request.body, output);
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["idempotency-key"], id.as_str());
    assert_eq!(request.headers["x-source"], "shop");
    assert_eq!(
        request.headers["user-agent"],
        concat!("kanat/", env!("CARGO_PKG_VERSION"))
    );
    let trace = node.trace(&id).await;
    let stages: Vec<_> = trace
        .iter()
        .map(|record| (record.stage.as_str(), record.status.as_str()))
        .collect();
    assert_eq!(
        stages,
        [("received", "ok"), ("mapped", "ok"), ("delivery", "ok")]
    );
    assert!(
        trace[2]
            .request
            .as_ref()
            .is_some_and(|request| request.contains(output)),
        "{trace:?}"
    );
    assert!(
        trace[2]
            .response
            .as_ref()
            .is_some_and(|response| response.starts_with(r#"{"status":200"#)),
        "{trace:?}"
    );
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn without_a_mapping_the_body_goes_out_byte_for_byte_under_its_own_type() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("raw"), &target.url).await;
    let bodies: [(&str, &[u8]); 3] = [
        (
            "application/json",
            b" {\"n\": 1.10,\n \"big\": 9007199254740993} ",
        ),
        ("application/x-www-form-urlencoded", b"a=1&a=2&b=%20"),
        ("application/octet-stream", b"\x00\xff\x10"),
    ];
    for (content_type, body) in bodies {
        let request = http::Request::post("/webhooks/receive/t-raw")
            .header("content-type", content_type)
            .body(kanat_net::body::full(body))
            .unwrap();
        let id = node.send(request).await.id("accepted");
        assert_eq!(node.finished(&id).await.status, Status::Delivered);
    }
    for ((content_type, body), received) in bodies.iter().zip(target.received()) {
        assert_eq!(
            received.headers["content-type"].to_str().unwrap(),
            *content_type
        );
        assert_eq!(&received.body[..], *body);
    }
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn json_that_came_as_a_form_is_named_where_it_fails_or_is_filtered() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut strict = flow("strict");
    strict.mapping = Some(Mapping {
        fields: vec![field("n", "source.n | required")],
    });
    node.deploy(&strict, &target.url).await;
    let mut filtering = flow("filtering");
    filtering.when = "source.n > 0".to_owned();
    node.deploy(&filtering, &target.url).await;
    let sent = |token: &str| {
        http::Request::post(format!("/webhooks/receive/{token}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(kanat_net::body::full(br#"{"n":1}"#.as_slice()))
            .unwrap()
    };
    let advice =
        "the body came as a form, and looks like JSON: send content-type: application/json";
    let id = node.send(sent("t-strict")).await.id("accepted");
    let failed = node.finished(&id).await;
    assert_eq!(failed.status, Status::DeadLetter);
    let error = failed.error.unwrap().message;
    assert!(error.ends_with(&format!("; {advice}")), "{error}");

    let id = node.send(sent("t-filtering")).await.id("accepted");
    assert_eq!(node.finished(&id).await.status, Status::Filtered);
    let trace = node.trace(&id).await;
    let filtered = trace.iter().find(|record| record.name == "when").unwrap();
    assert_eq!(filtered.error.as_deref(), Some(advice));
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_failed_delivery_is_retried_under_the_same_key_and_trace() {
    let node = Node::start().await;
    let target = Target::answering(|nth, _| status(if nth < 2 { 503 } else { 201 })).await;
    node.deploy(&flow("flaky"), &target.url).await;
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut request = super::node::webhook("t-flaky", "{}");
    request
        .headers_mut()
        .insert("traceparent", traceparent.parse().unwrap());
    request
        .headers_mut()
        .insert("tracestate", "vendor=a".parse().unwrap());
    let id = node.send(request).await.id("accepted");
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::Delivered);
    assert_eq!(message.attempts, 3);
    let received = target.received();
    assert_eq!(received.len(), 3);
    let mut spans = std::collections::HashSet::new();
    for request in &received {
        assert_eq!(request.headers["idempotency-key"], id.as_str());
        let child = request.headers["traceparent"].to_str().unwrap();
        assert!(
            child.starts_with(&traceparent[..36]) && child != traceparent,
            "{child}"
        );
        assert!(spans.insert(child.to_owned()));
        assert_eq!(request.headers["tracestate"], "vendor=a");
    }
    let trace = node.trace(&id).await;
    let stages: Vec<_> = trace
        .iter()
        .map(|record| (record.stage.as_str(), record.attempt))
        .collect();
    let expected = [
        ("received", 1),
        ("delivery", 1),
        ("retry_scheduled", 1),
        ("delivery", 2),
        ("retry_scheduled", 2),
        ("delivery", 3),
    ];
    assert_eq!(stages, expected);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_target_that_never_works_leaves_a_dead_letter() {
    let node = Node::start().await;
    let target =
        Target::answering(|_, _| Response::builder().status(500).body("no luck").unwrap()).await;
    node.deploy(&flow("broken"), &target.url).await;
    let id = node.accepted("t-broken", "{}").await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 4);
    let failure = message.error.unwrap();
    let told = format!("POST {}/in answered 500: no luck", target.url);
    assert_eq!(failure.kind, ErrorKind::Status);
    assert_eq!(&failure.message, &told);
    assert_eq!(target.received().len(), 4);
    let trace = node.trace(&id).await;
    let last = trace.last().unwrap();
    assert_eq!(last.stage.as_str(), "dead_lettered");
    assert_eq!(last.error.as_ref(), Some(&told));
    assert!(trace.iter().any(|record| {
        record
            .response
            .as_ref()
            .is_some_and(|shown| shown.contains("no luck"))
    }));
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_target_that_is_not_there_is_a_network_failure() {
    let node = Node::start().await;
    let target = Target::start().await;
    let url = target.url.clone();
    target.stop().await;
    node.deploy(&flow("gone"), &url).await;
    let id = node.accepted("t-gone", "{}").await;
    let message = node.finished(&id).await;
    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 4);
    let failure = message.error.unwrap();
    let place = url.strip_prefix("http://").unwrap();
    let told = format!("POST {url}/in: connection refused by {place}");
    assert_eq!(failure.kind, ErrorKind::Network);
    assert_eq!(failure.message, told);
    node.stop().await;
}

#[tokio::test]
async fn a_refusal_in_an_answer_of_success_is_a_failure_where_the_catalog_says_so() {
    const REFUSED: &str = r#"{"ok": false, "error": "invalid_auth"}"#;
    let node = Node::start().await;
    let target =
        Target::answering(|_, _| Response::builder().status(200).body(REFUSED).unwrap()).await;
    let config = format!(
        r#"{{"bot_token":"xoxb-1","base_url":"{}/api"}}"#,
        target.url
    );
    node.control.instance_of("slack", "ci_chat", &config).await;
    let to = |name: &str, method: &str, endpoint: &str| {
        let mut plan = flow(name);
        let to = plan.target.as_mut().expect("a target");
        to.instance = "ci_chat".to_owned();
        to.endpoint = endpoint.to_owned();
        to.method = method.to_owned();
        plan
    };
    node.control
        .flow(&to("posts", "POST", "/chat.{{ source.what }}?x=1"))
        .await;
    node.control
        .flow(&to("elsewhere", "POST", "/chat.unknown"))
        .await;
    node.control
        .flow(&to("otherwise", "PUT", "/chat.postMessage"))
        .await;
    let id = node.accepted("t-posts", r#"{"what":"postMessage"}"#).await;
    let failure = node.finished(&id).await.error.unwrap();
    let told = format!(
        "POST {}/api/chat.postMessage?x=1 answered 200: {REFUSED}",
        target.url
    );
    assert_eq!(failure.kind, ErrorKind::TargetRefused);
    assert_eq!(failure.message, told);
    for token in ["t-elsewhere", "t-otherwise"] {
        let id = node.accepted(token, "{}").await;
        assert_eq!(
            node.finished(&id).await.status,
            Status::Delivered,
            "{token}"
        );
    }
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_mapping_error_is_final_and_names_field_expression_and_value() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("strict");
    plan.mapping = Some(Mapping {
        fields: vec![field("total", "source.amount | decimal(2)")],
    });
    node.deploy(&plan, &target.url).await;
    let id = node.accepted("t-strict", r#"{"amount":"twelve"}"#).await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 1);
    let failure = message.error.unwrap();
    assert_eq!(failure.kind, ErrorKind::Mapping);
    assert_eq!(failure.field.as_deref(), Some("total"));
    assert_eq!(
        failure.expression.as_deref(),
        Some("source.amount | decimal(2)")
    );
    for part in ["total", "source.amount | decimal(2)", "decimal", "twelve"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
    let trace = node.trace(&id).await;
    let mapped = trace
        .iter()
        .find(|record| record.stage == "mapped")
        .unwrap();
    assert_eq!(mapped.status.as_str(), "failed");
    assert_eq!(mapped.error.as_ref(), Some(&failure.message));
    assert!(target.received().is_empty());
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_message_that_the_condition_does_not_hold_for_is_filtered() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("choosy");
    plan.when = "source.total > 0".to_owned();
    node.deploy(&plan, &target.url).await;
    let kept = node.accepted("t-choosy", r#"{"total":1}"#).await;
    let dropped = node.accepted("t-choosy", r#"{"total":0}"#).await;
    assert_eq!(node.finished(&kept).await.status, Status::Delivered);
    assert_eq!(node.finished(&dropped).await.status, Status::Filtered);
    let text = node.accepted("t-choosy", r#"{"total":"7"}"#).await;
    assert_eq!(node.finished(&text).await.status, Status::Filtered);
    let trace = node.trace(&text).await;
    let told = trace.iter().find(|record| record.name == "when").unwrap();
    assert_eq!(
        told.error.as_deref(),
        Some("the condition compares a text (\"7\") with a number; use source.total | number")
    );
    assert_eq!(target.received().len(), 1);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn retry_on_transient_gives_up_on_a_refusal_at_once() {
    let node = Node::start().await;
    let target = Target::answering(|_, _| status(422)).await;
    let mut plan = flow("picky");
    plan.retry = Some(Retry {
        count: 3,
        duration_ms: 1,
        transient_only: true,
        ..Retry::default()
    });
    node.deploy(&plan, &target.url).await;
    let id = node.accepted("t-picky", "{}").await;
    let message = node.finished(&id).await;
    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 1);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn retry_after_moves_the_next_attempt() {
    let node = Node::start().await;
    let target = Target::answering(|_, _| {
        Response::builder()
            .status(429)
            .header("retry-after", "3600")
            .body("")
            .unwrap()
    })
    .await;
    node.deploy(&flow("busy"), &target.url).await;
    let id = node.accepted("t-busy", "{}").await;
    let message = node
        .message_when(&id, |message| message.status == Status::Retrying)
        .await;
    let wait = message.next_attempt_at.unwrap().since(message.received_at);
    assert!((3600..3700).contains(&wait.as_secs()), "{wait:?}");
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn no_trace_no_output_and_no_error_shows_a_connectors_secret() {
    let node = Node::start().await;
    let target = Target::answering(|_, _| {
        Response::builder()
            .status(401)
            .body("bad key s3cr3t-key")
            .unwrap()
    })
    .await;
    let config = format!(
        concat!(
            r#"{{"base_url":"{}","auth":"api_key","api_key":"s3cr3t-key","#,
            r#""api_key_in":"query","api_key_name":"k"}}"#
        ),
        target.url
    );
    node.control.instance("ci_keyed", &config).await;
    let mut plan = flow("keyed");
    plan.retry = None;
    plan.target.as_mut().unwrap().headers = vec![NamedText {
        name: "X-Copy".to_owned(),
        text: "{{ instance.api_key }}".to_owned(),
    }];
    plan.mapping = Some(Mapping {
        fields: vec![field("copy", "instance.api_key")],
    });
    node.control.flow(&plan).await;
    let id = node.accepted("t-keyed", "{}").await;
    let message = node.finished(&id).await;

    let [request] = &target.received()[..] else {
        panic!("one request")
    };
    assert_eq!(request.path, "/in?k=s3cr3t-key");
    assert_eq!(request.headers["x-copy"], "s3cr3t-key");
    assert_eq!(request.body, r#"{"copy":"s3cr3t-key"}"#);
    assert_eq!(
        message.output.as_deref(),
        Some(&br#"{"copy":"********"}"#[..])
    );
    let shown = format!("{:?} {:?}", node.trace(&id).await, message.error);
    assert!(
        !shown.contains("s3cr3t") && shown.contains("********"),
        "{shown}"
    );
    node.stop().await;
    target.stop().await;
}
