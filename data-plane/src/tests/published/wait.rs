//! Calls that wait for what the flow makes of them.

use std::sync::Arc;

use flate2::read::GzDecoder;
use http::Response;
use http_body_util::BodyExt;
use kanat_message_log::{Filter, Message, Position};
use kanat_model::id::MessageId;
use kanat_model::message::Status;
use kanat_model::page::Page;
use kanat_proto::plan::v1::response_mapping::Body;
use kanat_proto::plan::v1::{Field, Mapping, NamedText, ResponseMapping, field};
use serde_json::json;
use std::io::Read;
use tower::ServiceExt;

use super::super::node::tenant;
use super::super::target::{Target, status};
use super::*;

fn mapping(fields: &[(&str, &str)]) -> Mapping {
    let field = |(name, text): &(&str, &str)| Field {
        name: (*name).to_owned(),
        value: Some(field::Value::Expression((*text).to_owned())),
    };
    Mapping {
        fields: fields.iter().map(field).collect(),
    }
}

/// An API whose calls wait; the flow's own output is the answer.
fn waiting(flow: &str) -> PublishedApi {
    let mut api = api(flow, "POST", flow);
    api.versions[0].synchronous = true;
    api
}

/// The only message that there is, once it has ended.
async fn only(node: &Node, flow: &str) -> Message {
    let filter = Filter::flow(
        tenant(),
        kanat_model::id::FlowId::new(format!("flw_{flow}")),
    );
    let mut changed = node.log.changed();
    loop {
        changed.borrow_and_update();
        let page = node
            .log
            .list(
                &filter,
                Position::Page(Page {
                    limit: 10,
                    offset: 0,
                }),
            )
            .await
            .unwrap();
        if let [only] = page.messages.as_slice()
            && only.status.is_final()
        {
            return only.clone();
        }
        changed.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_flow_that_calls_nobody_answers_from_memory_and_leaves_its_record() {
    let node = Node::start().await;
    let mut flow = api_flow("memory");
    flow.mapping = Some(mapping(&[
        ("total", "source.n"),
        ("who", "source.name | uppercase"),
    ]));
    flow.when = "source.skip != true".to_owned();
    node.control.flow(&flow).await;
    node.control.api(&waiting("memory")).await;

    let answer = node
        .ask("POST", "/memory", &[JSON], r#"{"n":1.10,"name":"x"}"#)
        .await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), r#"{"total":1.10,"who":"X"}"#);
    assert_eq!(answer.header("content-type"), "application/json");
    let message = only(&node, "memory").await;
    assert_eq!(message.status, Status::Delivered);
    assert_eq!(message.attempts, 1);
    assert_eq!(message.trigger.as_str(), "api");
    assert_eq!(message.output.as_deref(), Some(answer.text.as_bytes()));
    let trace = node.trace(&message.id).await;
    let stages: Vec<_> = trace.iter().map(|record| record.stage.as_str()).collect();
    assert_eq!(stages, ["received", "validated", "mapped", "answered"]);

    let filtered = node
        .ask("POST", "/memory", &[JSON], r#"{"skip":true}"#)
        .await;
    assert_eq!(filtered.status.as_u16(), 204);
    assert_eq!(filtered.text.as_str(), "");
    let failed = node
        .ask("POST", "/memory", &[JSON], r#"{"n":1,"name":[]}"#)
        .await;
    assert_eq!(failed.status.as_u16(), 502);
    assert_eq!(
        failed.json()["error"].as_str(),
        Some("the flow could not map the request")
    );
    let id = MessageId::new(failed.json()["messageId"].as_str().unwrap());
    let mut changed = node.log.changed();
    while node
        .log
        .get(&tenant(), &id)
        .await
        .unwrap()
        .is_none_or(|message| message.status != Status::DeadLetter)
    {
        changed.changed().await.unwrap();
    }
    node.stop().await;
}

#[tokio::test]
async fn a_response_mapping_sets_body_status_and_headers() {
    let node = Node::start().await;
    node.control.flow(&api_flow("mapped")).await;
    let mut api = waiting("mapped");
    api.versions[0].response_mapping = Some(ResponseMapping {
        body: Some(Body::Mapping(mapping(&[
            ("id", "source.id"),
            ("by", "trigger.api.version"),
        ]))),
        status: "source.status".to_owned(),
        headers: vec![NamedText {
            name: "Location".into(),
            text: "/x/{{ source.id }}".into(),
        }],
        variables: Vec::new(),
    });
    node.control.api(&api).await;
    let answer = node
        .ask("POST", "/v1/mapped", &[JSON], r#"{"id":7,"status":201}"#)
        .await;
    assert_eq!(answer.status.as_u16(), 201);
    assert_eq!(answer.text.as_str(), r#"{"id":7,"by":"v1"}"#);
    assert_eq!(answer.header("location"), "/x/7");
    let unfit = node
        .ask("POST", "/v1/mapped", &[JSON], r#"{"id":7,"status":"x"}"#)
        .await;
    assert_eq!(unfit.status.as_u16(), 502);
    assert_eq!(unfit.json()["code"].as_str(), Some("INTERNAL"));

    let html = Body::Template("<b>{{ source.id }}</b>".to_owned());
    let headers = vec![NamedText {
        name: "Content-Type".into(),
        text: "text/html".into(),
    }];
    api.versions[0].response_mapping = Some(ResponseMapping {
        body: Some(html),
        headers,
        ..ResponseMapping::default()
    });
    node.control.api(&api).await;
    let answer = node.ask("POST", "/mapped", &[JSON], r#"{"id":7}"#).await;
    assert_eq!(answer.text.as_str(), "<b>7</b>");
    assert_eq!(answer.header("content-type"), "text/html");
    node.stop().await;
}

#[tokio::test]
async fn an_answer_is_checked_against_its_schema() {
    let node = Node::start().await;
    node.control.flow(&api_flow("checked")).await;
    let mut api = waiting("checked");
    api.versions[0].response_schema = r#"{"type":"object","required":["ok"]}"#.to_owned();
    node.control.api(&api).await;
    let answer = node.ask("POST", "/checked", &[JSON], r#"{"a":1}"#).await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), r#"{"a":1}"#);
    let message = only(&node, "checked").await;
    assert_eq!(message.status, Status::Delivered);
    let trace = node.trace(&message.id).await;
    let noted = trace
        .iter()
        .find(|record| record.name == "responseSchema")
        .unwrap();
    assert!(
        noted.status == "warning" && noted.error.as_ref().unwrap().contains("ok"),
        "{noted:?}"
    );

    api.strict_response = true;
    node.control.api(&api).await;
    let refused = node.ask("POST", "/checked", &[JSON], r#"{"a":1}"#).await;
    assert_eq!(refused.status.as_u16(), 502);
    assert!(!(refused.text.contains("\"a\"")));
    assert_eq!(
        node.ask("POST", "/checked", &[JSON], r#"{"ok":1}"#)
            .await
            .status,
        200
    );
    node.stop().await;
}

#[tokio::test]
async fn long_answers_are_compressed_as_the_caller_wants() {
    let node = Node::start().await;
    node.control.flow(&api_flow("long")).await;
    node.control.api(&waiting("long")).await;
    let body = format!("[{}1]", "1,".repeat(2000));
    let ask = request(
        "POST",
        "/long",
        &[JSON, ("accept-encoding", "gzip;q=0.9, br;q=0.1")],
        &body,
    );
    let response = node.plane.service().oneshot(ask).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["vary"], "accept-encoding");
    let packed = response.into_body().collect().await.unwrap().to_bytes();
    let mut plain = String::new();
    GzDecoder::new(packed.as_ref())
        .read_to_string(&mut plain)
        .unwrap();
    assert_eq!(plain, body);
    let plain = node.ask("POST", "/long", &[JSON], &body).await;
    assert_eq!(plain.header("content-encoding"), "");
    assert_eq!(plain.header("vary"), "accept-encoding");
    assert_eq!(plain.text.as_str(), body.as_str());
    node.stop().await;
}

#[tokio::test]
async fn a_call_to_a_target_is_answered_with_what_it_said() {
    let node = Node::start().await;
    let target = Target::answering(|_, _| {
        Response::builder()
            .status(201)
            .body(r#"{"id": 9007199254740993}"#)
            .unwrap()
    })
    .await;
    let flow = FlowPlan {
        target: flow("call").target,
        ..api_flow("call")
    };
    node.deploy(&flow, &target.url).await;
    let mut api = waiting("call");
    node.control.api(&api).await;
    let answer = node.ask("POST", "/call", &[JSON], r#"{"a":1}"#).await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), r#"{"id": 9007199254740993}"#);
    let message = only(&node, "call").await;
    assert_eq!(message.status, Status::Delivered);
    assert_eq!(target.received()[0].body.as_ref(), br#"{"a":1}"#.as_slice());

    let body = Some(Body::Expression("target.response".to_owned()));
    api.versions[0].response_mapping = Some(ResponseMapping {
        body,
        ..ResponseMapping::default()
    });
    node.control.api(&api).await;
    let key = ("idempotency-key", "k");
    let answer = node.ask("POST", "/call", &[JSON, key], r#"{"a":1}"#).await;
    assert_eq!(
        answer.json(),
        json!({"body": {"id": 9007199254740993_u64}, "status": 201})
    );
    let again = node.ask("POST", "/call", &[JSON, key], r#"{"a":1}"#).await;
    assert_eq!(again.status, answer.status);
    assert_eq!(&again.text, &answer.text);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(
        node.ask("POST", "/call", &[JSON, key], r#"{"a":2}"#)
            .await
            .status,
        409
    );
    assert_eq!(target.received().len(), 2);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn steps_are_answered_with_the_last_output_and_one_that_rejects_ends_the_message() {
    let node = Node::start().await;
    let desk = Target::answering(|nth, _| match nth {
        0 => Response::builder()
            .status(201)
            .body(r#"{"ticket": {"id": 7}}"#)
            .unwrap(),
        _ => status(500),
    })
    .await;
    let config = format!(
        r#"{{"subdomain":"s","email":"a@s.example","api_token":"t","base_url":"{}"}}"#,
        desk.url
    );
    node.control
        .instance_of("support-ticketing", "ci_desk", &config)
        .await;
    let mut flow = api_flow("steps");
    flow.steps = vec![v1::Step {
        name: "open".to_owned(),
        entry: "support-ticketing".to_owned(),
        action: "create-ticket".to_owned(),
        instance: "ci_desk".to_owned(),
        params: r#"{"ticket": {"comment": {"body": "{{ source.text }}"}}}"#.to_owned(),
        reject_on_failure: true,
        ..v1::Step::default()
    }];
    node.control.flow(&flow).await;
    node.control.api(&waiting("steps")).await;
    let answer = node
        .ask("POST", "/steps", &[JSON], r#"{"text":"it broke"}"#)
        .await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), r#"{"ticket": {"id": 7}}"#);
    let rejected = node
        .ask("POST", "/steps", &[JSON], r#"{"text":"again"}"#)
        .await;
    assert_eq!(rejected.status.as_u16(), 502);
    assert_eq!(
        rejected.json()["error"].as_str(),
        Some("a step of the flow failed")
    );
    let id = MessageId::new(rejected.json()["messageId"].as_str().unwrap());
    assert_eq!(node.finished(&id).await.status, Status::DeadLetter);
    node.stop().await;
    desk.stop().await;
}

#[tokio::test]
async fn a_malformed_answer_of_a_target_is_502_where_it_is_read() {
    let node = Node::start().await;
    let target = Target::answering(|_, _| {
        let response = Response::builder().header("content-type", "application/json");
        response.body(r#"{"id":"#).unwrap()
    })
    .await;
    let flow = FlowPlan {
        target: flow("broken").target,
        ..api_flow("broken")
    };
    node.deploy(&flow, &target.url).await;
    let mut api = waiting("broken");
    node.control.api(&api).await;
    let lenient = node.ask("POST", "/broken", &[JSON], "{}").await;
    assert_eq!(lenient.status.as_u16(), 200);
    let trace = node.trace(&only(&node, "broken").await.id).await;
    let warned = trace
        .iter()
        .find(|record| record.status == "warning")
        .unwrap();
    let reason = "the answer 200 contradicts its content type: the body is not valid JSON";
    assert!(
        warned.error.as_ref().unwrap().starts_with(reason),
        "{warned:?}"
    );

    api.strict_response = true;
    for (text, status) in [("", 502), ("target.response.body", 502), ("source", 200)] {
        let body = (!text.is_empty()).then(|| Body::Expression(text.to_owned()));
        api.versions[0].response_mapping = body.map(|body| ResponseMapping {
            body: Some(body),
            ..ResponseMapping::default()
        });
        node.control.api(&api).await;
        let answer = node.ask("POST", "/broken", &[JSON], "{}").await;
        assert_eq!(answer.status.as_u16(), status, "{text}: {}", answer.text);
        if status == 502 {
            let id = MessageId::new(answer.json()["messageId"].as_str().unwrap());
            let message = node.finished(&id).await;
            assert_eq!(message.status, Status::Delivered);
            let failure = message.error.unwrap();
            assert_eq!(failure.field.as_deref(), Some("target.response.body"));
            assert!(failure.message.contains(reason), "{failure:?}");
        }
    }
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_target_that_fails_is_502_and_the_message_goes_on() {
    let node = Node::start().await;
    let target = Target::answering(|nth, _| status(if nth == 0 { 500 } else { 200 })).await;
    let flow = FlowPlan {
        target: flow("fails").target,
        ..api_flow("fails")
    };
    node.deploy(&flow, &target.url).await;
    node.control.api(&waiting("fails")).await;
    let answer = node.ask("POST", "/fails", &[JSON], "{}").await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    let id = MessageId::new(answer.json()["messageId"].as_str().unwrap());
    let message = node.finished(&id).await;
    assert_eq!(message.status, Status::Delivered);
    assert_eq!(message.attempts, 2);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_repeat_by_the_flow_s_key_is_an_error_once_the_first_message_is_given_up() {
    let node = Node::start().await;
    let target = Target::answering(|nth, _| status(if nth == 0 { 400 } else { 200 })).await;
    let mut flow = FlowPlan {
        target: flow("keyed").target,
        idempotency_key: "source.id".to_owned(),
        ..api_flow("keyed")
    };
    flow.retry = None;
    node.deploy(&flow, &target.url).await;
    node.control.api(&waiting("keyed")).await;
    let failed = node.ask("POST", "/keyed", &[JSON], r#"{"id":1}"#).await;
    assert_eq!(failed.status, 502, "{}", failed.text);
    let id = failed.json()["messageId"].as_str().unwrap().to_owned();
    let message = node.finished(&MessageId::new(id.as_str())).await;
    assert_eq!(message.status, Status::DeadLetter);

    let again = node.ask("POST", "/keyed", &[JSON], r#"{"id":1}"#).await;
    assert_eq!(again.status, 502, "{}", again.text);
    assert_eq!(again.json()["messageId"].as_str(), Some(id.as_str()));
    let error = again.json()["error"].as_str().unwrap().to_owned();
    assert!(
        error.ends_with("that message ended as dead_letter"),
        "{error}"
    );

    let delivered = node.ask("POST", "/keyed", &[JSON], r#"{"id":2}"#).await;
    assert_eq!(delivered.status, 200, "{}", delivered.text);
    let repeat = node.ask("POST", "/keyed", &[JSON], r#"{"id":2}"#).await;
    assert_eq!(repeat.status, 202, "{}", repeat.text);
    assert_eq!(repeat.json()["status"].as_str(), Some("duplicate"));
    assert_eq!(target.received().len(), 2);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_504_and_goes_on_or_is_dropped() {
    let node = Node::start().await;
    let target = Target::start().await;
    target.hang();
    let flow = FlowPlan {
        target: flow("slow").target,
        ..api_flow("slow")
    };
    node.deploy(&flow, &target.url).await;
    let mut api = waiting("slow");
    api.deadline_ms = 20;
    node.control.api(&api).await;
    let goes_on = node.ask("POST", "/slow", &[JSON], "{}").await;
    api.discard_late = true;
    node.control.api(&api).await;
    let dropped = node.ask("POST", "/slow", &[JSON], "{}").await;
    let id = |answer: &Answer| {
        assert_eq!(answer.status.as_u16(), 504);
        assert_eq!(answer.json()["code"].as_str(), Some("DEADLINE_EXCEEDED"));
        MessageId::new(answer.json()["messageId"].as_str().unwrap())
    };
    let message = node.finished(&id(&dropped)).await;
    assert_eq!(message.status, Status::Discarded);
    assert!(message.error.unwrap().message.contains("deadline"));
    target.release();
    assert_eq!(node.finished(&id(&goes_on)).await.status, Status::Delivered);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_paused_flow_takes_no_calls_that_wait() {
    let node = Node::start().await;
    node.control
        .flow(&FlowPlan {
            paused: true,
            ..api_flow("paused")
        })
        .await;
    node.control.api(&waiting("paused")).await;
    let answer = node.ask("POST", "/paused", &[JSON], "{}").await;
    assert_eq!(answer.status.as_u16(), 503);
    assert_eq!(answer.header("retry-after"), "5");
    assert_eq!(node.stored(), 0);
    node.stop().await;
}

#[tokio::test]
async fn a_switch_of_versions_under_load_is_an_error_to_nobody() {
    let node = Arc::new(Node::start().await);
    node.control.flow(&api_flow("switch")).await;
    let mut api = waiting("switch");
    let body = |text: &str| ResponseMapping {
        body: Some(Body::Template(text.to_owned())),
        ..ResponseMapping::default()
    };
    api.versions[0].response_mapping = Some(body("one"));
    node.control.api(&api).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let node = Arc::clone(&node);
        let stop = stop.clone();
        callers.spawn(async move {
            let mut seen = std::collections::BTreeSet::new();
            while !stop.is_cancelled() {
                let answer = node.ask("POST", "/switch", &[JSON], "{}").await;
                assert_eq!(answer.status, 200, "{}", answer.text);
                seen.insert(answer.text);
                tokio::task::yield_now().await;
            }
            seen
        });
    }
    for number in 2..=10 {
        let mut next = version(number, "switch");
        next.synchronous = true;
        next.response_mapping = Some(body("later"));
        api.versions.last_mut().unwrap().status = "deprecated".to_owned();
        api.versions.push(next);
        node.control.api(&api).await;
    }
    stop.cancel();
    let seen: std::collections::BTreeSet<String> =
        callers.join_all().await.into_iter().flatten().collect();
    assert!(seen.contains("\"later\"") && seen.len() <= 2, "{seen:?}");
    Arc::into_inner(node).unwrap().stop().await;
}
