//! Flows with steps: called in order, kept when they succeed, called again only when they failed.

use http::Response;
use kanat_model::message::{ErrorKind, Status};
use kanat_proto::plan::v1::{Field, FlowPlan, Mapping, Step, field};

use super::node::{Node, flow};
use super::target::{ReceivedRequest, Target, status};

const DESK: &str = "ci_desk";

fn step(name: &str, action: &str, params: &str) -> Step {
    Step {
        name: name.to_owned(),
        entry: "support-ticketing".to_owned(),
        action: action.to_owned(),
        instance: DESK.to_owned(),
        params: params.to_owned(),
        ..Step::default()
    }
}

/// Opens a ticket, comments on it, and tells the target of it.
fn tickets(name: &str) -> FlowPlan {
    let value = field::Value::Expression("steps.open.output.ticket.id".to_owned());
    let mut plan = flow(name);
    plan.steps = vec![
        step(
            "open",
            "create-ticket",
            r#"{"ticket": {"comment": {"body": "{{ source.text }}"}}}"#,
        ),
        step(
            "note",
            "add-comment",
            concat!(
                r#"{"ticketId": "{{ steps.open.output.ticket.id }}", "#,
                r#""ticket": {"comment": {"body": "seen", "public": false}}}"#
            ),
        ),
    ];
    plan.mapping = Some(Mapping {
        fields: vec![Field {
            name: "ticket".to_owned(),
            value: Some(value),
        }],
    });
    plan
}

/// Answers like the desk; `note` decides what the nth comment gets.
async fn desk(note: impl Fn(usize) -> u16 + Send + Sync + 'static) -> Target {
    let notes = std::sync::atomic::AtomicUsize::new(0);
    Target::answering(move |_, received| match received.method.as_str() {
        "POST" => Response::builder()
            .status(201)
            .body(r#"{"ticket": {"id": 9007199254740993}}"#)
            .unwrap(),
        _ => status(note(
            notes.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        )),
    })
    .await
}

async fn deploy(node: &Node, plan: &FlowPlan, desk: &Target, target: &Target) {
    let config = format!(
        r#"{{"subdomain":"s","email":"a@s.example","api_token":"s3cr3t-key","base_url":"{}"}}"#,
        desk.url
    );
    node.control
        .instance_of("support-ticketing", DESK, &config)
        .await;
    node.deploy(plan, &target.url).await;
}

fn calls(target: &Target) -> Vec<String> {
    let shown = |received: &ReceivedRequest| {
        format!(
            "{} {} {}",
            received.method,
            received.path,
            String::from_utf8_lossy(&received.body)
        )
        .trim()
        .to_owned()
    };
    target.received().iter().map(shown).collect()
}

#[tokio::test]
async fn steps_run_in_order_and_hand_their_outputs_on() {
    let node = Node::start().await;
    let desk = desk(|_| 200).await;
    let target = Target::start().await;
    deploy(&node, &tickets("order"), &desk, &target).await;
    let id = node.accepted("t-order", r#"{"text":"it broke"}"#).await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
    assert_eq!(message.attempts, 1, "{:?}", message.error);
    assert_eq!(
        calls(&desk),
        [
            r#"POST /api/v2/tickets {"ticket":{"comment":{"body":"it broke"}}}"#,
            concat!(
                r#"PUT /api/v2/tickets/9007199254740993 {"ticket":{"comment": {"body": "seen", "#,
                r#""public": false}}}"#
            ),
        ]
    );
    assert_eq!(calls(&target), [r#"POST /in {"ticket":9007199254740993}"#]);
    let keys: Vec<_> = desk
        .received()
        .iter()
        .map(|call| call.headers["idempotency-key"].clone())
        .collect();
    assert_eq!(
        keys,
        [format!("{id}.open").as_str(), format!("{id}.note").as_str()]
    );
    assert_eq!(target.received()[0].headers["idempotency-key"], id.as_str());
    assert_eq!(
        desk.received()[0].headers["authorization"],
        "Basic YUBzLmV4YW1wbGUvdG9rZW46czNjcjN0LWtleQ=="
    );

    let trace = node.trace(&id).await;
    let stages: Vec<_> = trace
        .iter()
        .map(|record| (record.stage.as_str(), record.name.as_str()))
        .collect();
    let expected = [
        ("received", "webhook"),
        ("step", "open"),
        ("step", "note"),
        ("mapped", "mapping"),
        ("delivery", "target"),
    ];
    assert_eq!(stages, expected);
    assert!(
        trace[1]
            .request
            .as_ref()
            .is_some_and(|request| request.contains("it broke")),
        "{trace:?}"
    );
    assert!(
        trace[1]
            .response
            .as_ref()
            .is_some_and(|response| response.contains("9007199254740993")),
        "{trace:?}"
    );
    assert!(!format!("{trace:?}").contains("s3cr3t") && !format!("{trace:?}").contains("czNjcjN0"));
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_retry_goes_on_at_the_step_that_failed() {
    let node = Node::start().await;
    let desk = desk(|nth| if nth < 2 { 503 } else { 200 }).await;
    let target = Target::answering(|nth, _| status(if nth == 0 { 500 } else { 200 })).await;
    deploy(&node, &tickets("resume"), &desk, &target).await;
    let id = node.accepted("t-resume", r#"{"text":"x"}"#).await;
    let message = node.finished(&id).await;

    // Two attempts end at the comment, one at the target.
    assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
    assert_eq!(message.attempts, 4, "{:?}", message.error);
    let methods: Vec<_> = desk
        .received()
        .iter()
        .map(|call| call.method.clone())
        .collect();
    assert_eq!(methods, ["POST", "PUT", "PUT", "PUT"]);
    assert_eq!(
        calls(&target),
        [r#"POST /in {"ticket":9007199254740993}"#; 2]
    );
    let trace = node.trace(&id).await;
    let steps: Vec<_> = trace
        .iter()
        .filter(|record| record.stage == "step")
        .collect();
    let told: Vec<_> = steps
        .iter()
        .map(|s| (s.name.as_str(), s.status.as_str(), s.attempt))
        .collect();
    assert_eq!(
        told,
        [
            ("open", "ok", 1),
            ("note", "failed", 1),
            ("open", "kept", 2),
            ("note", "failed", 2),
            ("open", "kept", 3),
            ("note", "ok", 3),
            ("open", "kept", 4),
            ("note", "kept", 4),
        ]
    );
    assert!(
        steps[1].error.as_ref().unwrap().ends_with(" answered 503"),
        "{:?}",
        steps[1]
    );
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_step_that_rejects_ends_the_message_at_once() {
    let node = Node::start().await;
    let desk = desk(|_| 503).await;
    let target = Target::start().await;
    let mut plan = tickets("reject");
    plan.steps[1].reject_on_failure = true;
    deploy(&node, &plan, &desk, &target).await;
    let id = node.accepted("t-reject", r#"{"text":"x"}"#).await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 1);
    let failure = message.error.unwrap();
    assert_eq!(failure.kind, ErrorKind::Rejected);
    assert_eq!(failure.field.as_deref(), Some("steps.note"));
    assert!(
        failure.message.starts_with("PUT http://") && failure.message.ends_with(" answered 503"),
        "{failure:?}"
    );
    assert_eq!(desk.received().len(), 2);
    assert_eq!(target.received().len(), 0);
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

/// Opens no ticket: the desk answers with a document that breaks off.
async fn broken_desk(times: usize) -> Target {
    Target::answering(move |nth, _| {
        let whole = nth >= times;
        let body = if whole {
            r#"{"ticket": {"id": 1}}"#
        } else {
            r#"{"ticket":"#
        };
        Response::builder()
            .header("content-type", "application/json")
            .body(body)
            .unwrap()
    })
    .await
}

#[tokio::test]
async fn a_step_whose_answer_is_malformed_fails_and_is_tried_again() {
    let node = Node::start().await;
    let desk = broken_desk(1).await;
    let target = Target::start().await;
    deploy(&node, &tickets("malformed"), &desk, &target).await;
    let id = node.accepted("t-malformed", r#"{"text":"x"}"#).await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
    assert_eq!(message.attempts, 2);
    assert_eq!(calls(&target), [r#"POST /in {"ticket":1}"#]);
    let trace = node.trace(&id).await;
    let failed = trace
        .iter()
        .find(|record| record.status == "failed")
        .unwrap();
    assert_eq!(
        (failed.stage.as_str(), failed.name.as_str()),
        ("step", "open")
    );
    let error = failed.error.as_deref().unwrap();
    assert!(
        error.starts_with(
            "the answer 200 to step \"open\" contradicts its content type: the body is not valid \
             JSON"
        ) && error.ends_with("line 1, column 11"),
        "{error}"
    );
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_malformed_answer_rejects_where_the_step_does() {
    let node = Node::start().await;
    let desk = broken_desk(9).await;
    let target = Target::start().await;
    let mut plan = tickets("broken");
    plan.steps[0].reject_on_failure = true;
    deploy(&node, &plan, &desk, &target).await;
    let id = node.accepted("t-broken", r#"{"text":"x"}"#).await;
    let message = node.finished(&id).await;

    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 1);
    let failure = message.error.unwrap();
    assert_eq!(failure.kind, ErrorKind::Rejected);
    assert_eq!(failure.field.as_deref(), Some("steps.open"));
    assert!(failure.message.contains("line 1, column"), "{failure:?}");
    assert!(target.received().is_empty());
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_flow_with_steps_alone_ends_with_the_last_one_and_skips_by_condition() {
    let node = Node::start().await;
    let desk = desk(|_| 200).await;
    let target = Target::start().await;
    let mut plan = tickets("alone");
    (plan.target, plan.mapping) = (None, None);
    plan.steps[1].when = "source.loud".to_owned();
    let config = format!(
        r#"{{"subdomain":"s","email":"a@s.example","api_token":"k","base_url":"{}"}}"#,
        desk.url
    );
    node.control
        .instance_of("support-ticketing", DESK, &config)
        .await;
    node.control.flow(&plan).await;
    let quiet = node.accepted("t-alone", r#"{"text":"x"}"#).await;
    assert_eq!(node.finished(&quiet).await.status, Status::Delivered);
    assert_eq!(desk.received().len(), 1);
    let trace = node.trace(&quiet).await;
    assert_eq!(trace[2].name.as_str(), "note");
    assert_eq!(trace[2].status.as_str(), "skipped");
    let loud = node
        .accepted("t-alone", r#"{"text":"x","loud":true}"#)
        .await;
    assert_eq!(node.finished(&loud).await.status, Status::Delivered);
    assert_eq!(desk.received().len(), 3);
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn params_that_do_not_fit_are_final_and_named() {
    let node = Node::start().await;
    let desk = desk(|_| 200).await;
    let target = Target::start().await;
    deploy(&node, &tickets("unfit"), &desk, &target).await;
    let id = node.accepted("t-unfit", r#"{"text":7}"#).await;
    let message = node.finished(&id).await;
    assert_eq!(message.status, Status::DeadLetter);
    assert_eq!(message.attempts, 1);
    let failure = message.error.unwrap();
    assert_eq!(failure.kind, ErrorKind::Mapping);
    assert_eq!(
        failure.field.as_deref(),
        Some("steps.open.params.ticket.comment.body")
    );
    let trace = node.trace(&id).await;
    assert!(
        trace
            .iter()
            .any(|record| (record.stage.as_str(), record.name.as_str()) == ("step", "open")),
        "{trace:?}"
    );
    assert!(desk.received().is_empty());
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_step_that_hangs_does_not_hold_up_what_others_send_to_the_same_target() {
    let node = Node::start().await;
    let desk = desk(|_| 200).await;
    let target = Target::start().await;
    desk.hang();
    deploy(&node, &tickets("slow"), &desk, &target).await;
    let mut plan = flow("quick");
    plan.target = tickets("slow").target;
    node.control.flow(&plan).await;
    let stuck =
        futures::future::join_all((0..100).map(|_| node.accepted("t-slow", r#"{"text":"x"}"#)))
            .await;
    desk.arrivals(64).await;
    for id in futures::future::join_all((0..100).map(|_| node.accepted("t-quick", "{}"))).await {
        assert_eq!(node.finished(&id).await.status, Status::Delivered);
    }
    desk.release();
    for id in stuck {
        assert_eq!(node.finished(&id).await.status, Status::Delivered);
    }
    node.stop().await;
    desk.stop().await;
    target.stop().await;
}
