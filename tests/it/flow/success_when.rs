//! `success_when`: a condition that answers of success have to satisfy, of the target and of steps.

use kanat_tests::target::{Reply, ok};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

use crate::steps::{self, calls, made};

/// A flow whose target is judged by `condition`.
fn flow(name: &str, condition: &str, on_error: &str) -> String {
    format!(
        "\
flow: {name}
source: {{trigger: webhook}}
target:
  connector: erp
  endpoint: /orders?key=1
  success_when: {}
on_error: {on_error}
",
        Value::from(condition)
    )
}

fn answer(body: &str) -> Reply {
    let kind = ("content-type".to_owned(), "application/json".to_owned());
    Reply::Answer(200, vec![kind], body.to_owned())
}

#[tokio::test]
async fn an_answer_that_does_not_satisfy_it_is_a_failed_attempt() {
    let app = TestApp::start().await;
    let erp = FakeTarget::scripted(|_, earlier| match earlier {
        0 => answer(r#"{"ok": false, "why": "busy"}"#),
        _ => answer(r#"{"ok": true}"#),
    })
    .await;
    app.api.http_instance("erp", &erp.url()).await;
    let yaml = flow(
        "judged",
        "response.body.ok == true and response.status == 200",
        "{retry: 2x fixed(10ms)}",
    );
    let (_, url) = app.api.deployed(&yaml).await;
    let id = app.api.webhook(&url, &json!({"id": 1})).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    assert_eq!(message["attempts"], 2);
    assert_eq!(message.get("error"), None);
    let told = format!(
        "POST {}/orders?key=1 answered 200, but success_when does not hold: response.body.ok == \
         true and response.status == 200",
        erp.url()
    );
    let trace = message["trace"].as_array().unwrap();
    let deliveries: Vec<_> = trace
        .iter()
        .filter(|record| record["stage"] == "delivery")
        .collect();
    let [refused, taken] = deliveries[..] else {
        panic!("two deliveries in {message}")
    };
    assert_eq!(refused["status"], "failed");
    assert_eq!(refused["error"], told);
    assert_eq!(refused["response"]["status"], 200);
    assert_eq!(
        refused["response"]["body"],
        json!({"ok": false, "why": "busy"})
    );
    assert_eq!(taken["status"], "ok");
    let keys: Vec<_> = erp
        .received()
        .iter()
        .map(|call| call.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, [id.clone(), id]);
}

#[tokio::test]
async fn refusals_end_by_the_policy_and_errors_of_the_condition_at_once() {
    let app = TestApp::start().await;
    let erp = FakeTarget::scripted(|_, _| answer(r#"{"ok": false, "n": "x"}"#)).await;
    app.api.http_instance("erp", &erp.url()).await;
    for (name, condition, on_error, kind, attempts) in [
        (
            "retried",
            "response.body.ok",
            "{retry: 2x fixed(10ms)}",
            "target_refused",
            3,
        ),
        (
            "transient",
            "response.body.ok",
            "{retry: 2x fixed(10ms), retry_on: transient}",
            "target_refused",
            1,
        ),
        (
            "wrong",
            "response.body.n | number > 1",
            "{retry: 2x fixed(10ms)}",
            "condition",
            1,
        ),
        (
            "no-table",
            "response.body.ok or response.body.n | required | date(YYYY)",
            "{retry: 2x fixed(10ms)}",
            "condition",
            1,
        ),
    ] {
        let (_, url) = app.api.deployed(&flow(name, condition, on_error)).await;
        let id = app.api.webhook(&url, &json!({})).await;
        let message = app.api.message_becomes(&id, "dead_letter").await;
        assert_eq!(message["error"]["kind"], kind, "{message}");
        assert_eq!(message["attempts"], attempts, "{message}");
        let trace = message["trace"].as_array().unwrap();
        let delivery = trace.iter().find(|record| record["stage"] == "delivery");
        let delivery = delivery.unwrap();
        assert_eq!(delivery["status"], "failed", "{message}");
        assert_eq!(delivery["response"]["body"]["n"], "x", "{message}");
        assert_eq!(delivery["error"], message["error"]["message"]);
        if kind == "condition" {
            assert_eq!(message["error"]["field"], "target.success_when");
            assert_eq!(message["error"]["expression"], condition);
        }
    }
}

#[tokio::test]
async fn the_answer_is_read_as_webhooks_are() {
    let app = TestApp::start().await;
    let erp = FakeTarget::scripted(|request, _| {
        let kind = |text: &str| ("Content-Type".to_owned(), text.to_owned());
        let header = |value: &str| ("X-Part".to_owned(), value.to_owned());
        let last = request.path.rsplit('/').next().unwrap_or_default();
        match last {
            "json" => answer(r#"{"total": 1.10}"#),
            "text" => Reply::Answer(200, vec![kind("text/plain")], "ok \"1\"".to_owned()),
            "empty" => Reply::Answer(204, Vec::new(), String::new()),
            "headers" => Reply::Answer(200, vec![header("a"), header("b")], String::new()),
            "long" => answer(&format!(
                "{{\"ok\": true, \"pad\": \"{}\"}}",
                "x".repeat(1 << 20)
            )),
            other => panic!("no answer for {other}"),
        }
    })
    .await;
    app.api.http_instance("erp", &erp.url()).await;
    for (path, condition) in [
        ("json", "response.body.total == 1.1"),
        ("text", "response.body == 'ok \"1\"'"),
        ("empty", "response.body == null and response.status == 204"),
        ("headers", "response.headers.X-Part == 'a, b'"),
        ("long", "not response.body and response.status == 200"),
        (
            "json",
            "source.expected == response.body.total and trigger.method == 'POST'",
        ),
        ("json", "instance.auth == 'none'"),
    ] {
        let yaml = flow("reading", condition, "{retry: 0x fixed(1s)}")
            .replace("/orders?key=1", &format!("/{path}"));
        let (flow, url) = app.api.deployed(&yaml).await;
        let id = app.api.webhook(&url, &json!({"expected": 1.10})).await;
        app.api.message_becomes(&id, "delivered").await;
        app.api
            .delete(&format!("/api/v1/flows/{flow}"))
            .await
            .expect(204);
    }
}

/// `contact`, which is taken at once, and `ticket`, which is judged.
fn with_steps(rest: &str) -> String {
    steps::FLOW.replace(
        "    connector: desk\n",
        &format!(
            "    connector: desk\n    success_when: response.body.ticket.id and \
             steps.contact.output.job_id\n{rest}"
        ),
    )
}

#[tokio::test]
async fn a_refused_step_has_no_output_and_is_called_again() {
    let app = TestApp::start().await;
    let mail = FakeTarget::scripted(|_, _| made(r#"{"job_id":"j-1"}"#)).await;
    let desk = FakeTarget::scripted(|_, earlier| match earlier {
        0 => made(r#"{"ticket":null}"#),
        _ => made(r#"{"ticket":{"id":7}}"#),
    })
    .await;
    let erp = FakeTarget::start().await;
    steps::instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app.api.deployed(&with_steps("")).await;
    let person = json!({"name": "Ann", "email": "ann@shop.example"});
    let id = app.api.webhook(&url, &person).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    assert_eq!(message["attempts"], 2);
    assert_eq!(mail.count(), 1, "the step before is not called again");
    assert_eq!(calls(&desk), ["POST /api/v2/tickets"; 2]);
    assert_eq!(erp.received()[0].json()["ticket"], 7);
    let trace = message["trace"].as_array().unwrap();
    let refused = trace
        .iter()
        .find(|record| record["name"] == "ticket")
        .unwrap();
    let told = format!(
        "POST {}/api/v2/tickets answered 201, but success_when does not hold: \
         response.body.ticket.id and steps.contact.output.job_id",
        desk.url()
    );
    assert_eq!(refused["error"], told);
    assert_eq!(refused["response"]["body"], json!({"ticket": null}));
}

#[tokio::test]
async fn a_refused_step_that_rejects_ends_its_message_at_once() {
    let app = TestApp::start().await;
    let mail = FakeTarget::scripted(|_, _| made(r#"{"job_id":"j-1"}"#)).await;
    let desk = FakeTarget::scripted(|_, _| made("{}")).await;
    let erp = FakeTarget::start().await;
    steps::instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app
        .api
        .deployed(&with_steps("    on_failure: reject\n"))
        .await;
    let person = json!({"name": "Ann", "email": "ann@shop.example"});
    let id = app.api.webhook(&url, &person).await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(message["attempts"], 1);
    assert_eq!(message["error"]["kind"], "rejected");
    assert_eq!(message["error"]["field"], "steps.ticket");
    assert_eq!(desk.count(), 1);
    assert_eq!(erp.count(), 0);
}

#[tokio::test]
async fn the_catalog_s_rule_holds_too() {
    let app = TestApp::start().await;
    let chat = FakeTarget::scripted(|_, earlier| match earlier {
        0 => answer(r#"{"ok": false, "error": "invalid_auth"}"#),
        _ => answer(r#"{"ok": true}"#),
    })
    .await;
    let config = json!({ "bot_token": "xoxb-1", "base_url": format!("{}/api", chat.url()) });
    steps::instance(&app.api, "slack", "erp", &config).await;
    let yaml = flow(
        "both",
        "response.body.error == 'invalid_auth'",
        "{retry: 0x fixed(1s)}",
    )
    .replace("/orders?key=1", "/chat.postMessage");
    let (_, url) = app.api.deployed(&yaml).await;
    let mut told = Vec::new();
    for _ in 0..2 {
        let id = app.api.webhook(&url, &json!({})).await;
        let message = app.api.message_becomes(&id, "dead_letter").await;
        assert_eq!(message["error"]["kind"], "target_refused");
        told.push(message["error"]["message"].as_str().unwrap().to_owned());
    }
    let call = format!("POST {}/api/chat.postMessage answered 200", chat.url());
    let own = format!("{call}: {{\"ok\": false, \"error\": \"invalid_auth\"}}");
    let condition =
        format!("{call}, but success_when does not hold: response.body.error == 'invalid_auth'");
    assert_eq!(told, [own, condition]);
}

#[tokio::test]
async fn a_waiting_caller_gets_502_and_an_answer_may_be_made_of_the_response() {
    let app = TestApp::start().await;
    let erp = FakeTarget::scripted(|_, earlier| match earlier {
        0 => answer(r#"{"ok": false}"#),
        _ => {
            let tag = ("ETag".to_owned(), "\"v1\"".to_owned());
            Reply::Answer(201, vec![tag], r#"{"ok": true, "id": 1.10}"#.to_owned())
        }
    })
    .await;
    app.api.http_instance("erp", &erp.url()).await;
    let yaml = flow("asked", "response.body.ok", "{retry: 0x fixed(1s)}")
        .replace("trigger: webhook", "trigger: api");
    app.api.deployed(&yaml).await;
    let api = json!({
        "flowName": "asked", "path": "asked", "authType": "none", "responseSchema": true,
        "responseMapping": {
            "id": "response.body.id", "tag": "response.headers.etag", "code": "response.status",
        },
    });
    app.api
        .post("/api/v1/published-apis", &api)
        .await
        .expect(201);
    let call = || {
        app.api
            .without_key()
            .post_owned("/v1/asked", &json!({"n": 1}))
    };
    let refused = call().await;
    assert_eq!(refused.status, 502, "{}", refused.text);
    assert!(!refused.text.contains("success_when"), "{}", refused.text);
    let taken = call().await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    assert_eq!(taken.text, r#"{"id":1.10,"tag":"\"v1\"","code":201}"#);
}

#[tokio::test]
async fn a_test_judges_the_outputs_that_it_is_given() {
    let app = TestApp::start().await;
    let desk = FakeTarget::start().await;
    let mail = FakeTarget::start().await;
    let erp = FakeTarget::scripted(|_, _| ok()).await;
    steps::instances(&app.api, &desk, &mail, &erp).await;
    let yaml = with_steps("").replace(
        "  method: PUT\n",
        "  method: PUT\n  success_when: response.body.ok\n",
    );
    let id = app.api.flow(&yaml).await;
    let path = format!("/api/v1/flows/{id}/test");
    let sample = json!({"name": "Ann", "email": "ann@shop.example"});
    let test = |outputs: Value| {
        let body = json!({ "sampleData": sample, "stepOutputs": outputs });
        app.api.post_owned(&path, &body)
    };
    let passed = test(json!({"contact": {"job_id": "j"}, "ticket": {"ticket": {"id": 7}}}))
        .await
        .expect(200);
    assert_eq!(passed["errors"], json!([]), "{passed}");
    assert_eq!(passed["output"]["ticket"], 7);

    let refused = test(json!({"contact": {"job_id": "j"}, "ticket": {"ticket": null}}))
        .await
        .expect(200);
    let told = format!(
        "POST {}/api/v2/tickets answered 200, but success_when does not hold: \
         response.body.ticket.id and steps.contact.output.job_id",
        desk.url()
    );
    let assumed = "; its output was given without a status, which counts as 200";
    assert_eq!(
        refused["errors"][0]["message"],
        format!("{told}{assumed}"),
        "{refused}"
    );
    assert_eq!(refused["errors"][0]["field"], "steps.ticket");
    let ticket = json!({"status": 200, "output": {"ticket": null}});
    let refused = test(json!({"contact": {"job_id": "j"}, "ticket": ticket}))
        .await
        .expect(200);
    assert_eq!(refused["errors"][0]["message"], told, "{refused}");

    for outputs in [json!({}), json!({"ticket": {"ticket": null}})] {
        let unknown = test(outputs).await.expect(200);
        assert_eq!(unknown["errors"], json!([]), "{unknown}");
    }
    assert_eq!(desk.count() + mail.count() + erp.count(), 0);
}

/// The headers of an answer are known where they are given.
#[tokio::test]
async fn a_test_judges_headers_that_it_is_given() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"
name: queue
source: { trigger: manual }
steps:
  - name: ask
    action: http.post
    connector: erp
    params: { path: /q, body: "{{ source }}" }
    success_when: response.status < 300 and response.headers.x-queue == 'a'
"#;
    let id = app.api.flow(yaml).await;
    let path = format!("/api/v1/flows/{id}/test");
    let test = |answer: Value| {
        let body = json!({"sampleData": {}, "stepOutputs": {"ask": answer}});
        app.api.post_owned(&path, &body)
    };
    let untold = test(json!({"n": 1})).await.expect(200);
    assert_eq!(untold["errors"], json!([]), "{untold}");
    let note = "response.headers is not known in a test: give stepOutputs with headers";
    assert!(untold["trace"].to_string().contains(note), "{untold}");

    let holds = test(json!({"headers": {"X-Queue": "a"}, "output": {"n": 1}})).await;
    let holds = holds.expect(200);
    assert_eq!(holds["errors"], json!([]), "{holds}");
    assert!(!holds["trace"].to_string().contains("not known"), "{holds}");
    let failed = test(json!({"status": 500, "output": {"n": 1}})).await;
    let failed = failed.expect(200);
    let message = failed["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("success_when does not hold"), "{failed}");
    let headers = json!({"headers": {"x-queue": "b"}, "status": 200, "output": {"n": 1}});
    let refused = test(headers).await.expect(200);
    let message = refused["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("success_when does not hold"), "{refused}");
    let wrong = test(json!({"headers": {"x-queue": 7}, "output": 1})).await;
    let wrong = wrong.expect(400);
    assert!(
        wrong
            .to_string()
            .contains("stepOutputs.ask.headers.x-queue"),
        "{wrong}"
    );
}
