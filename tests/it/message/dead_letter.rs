//! Dead letters: their causes, their content, and how they are retried or discarded.

use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

const FLOW: &str = r"flow: letters
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  id: source.id | required
  total: source.amount | decimal(2)
on_error:
  retry: 2x fixed(20ms)
  then: dead-letter
";

#[tokio::test]
async fn a_mapping_error_names_field_expression_and_value_and_is_not_retried() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app
        .api
        .webhook(&url, &json!({"id": 1, "amount": "a lot"}))
        .await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(message["error"]["kind"], "mapping");
    assert_eq!(message["error"]["field"], "total");
    assert_eq!(message["error"]["expression"], "source.amount | decimal(2)");
    let said = message["error"]["message"].as_str().unwrap();
    assert!(said.contains("a lot") && said.contains("decimal"), "{said}");
    let stages: Vec<_> = message["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["stage"].as_str().unwrap())
        .collect();
    assert!(
        stages.contains(&"mapped") && stages.contains(&"dead_lettered"),
        "{stages:?}"
    );
    assert!(!stages.contains(&"retry_scheduled"), "{stages:?}");

    let missing = app.api.webhook(&url, &json!({"amount": 1})).await;
    let message = app.api.message_becomes(&missing, "dead_letter").await;
    assert_eq!(message["error"]["field"], "id");
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_message_that_takes_too_much_work_fails_for_good_and_holds_up_nobody() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app
        .api
        .deployed(
            r"flow: squares
version: 1
source: {trigger: webhook}
target: {connector: erp, endpoint: /in, method: POST}
mapping:
  lines:
    each: source.items
    map: {first: source.items | first}
",
        )
        .await;
    let (_, other) = app.api.deployed(FLOW).await;
    let items = vec![1; 40_000];
    let id = app.api.webhook(&url, &json!({ "items": items })).await;
    let small = app
        .api
        .webhook(&other, &json!({"id": 1, "amount": 1}))
        .await;
    app.api.message_becomes(&small, "delivered").await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(message["error"]["kind"], "mapping");
    let field = message["error"]["field"].as_str().unwrap();
    assert!(field.starts_with("lines["), "{field}");
    assert_eq!(message["error"]["expression"], "source.items | first");
    let said = message["error"]["message"].as_str().unwrap();
    assert!(said.contains("reads more than 512 MiB"), "{said}");
    let stages = message["trace"].as_array().unwrap();
    assert!(
        stages.iter().all(|t| t["stage"] != "retry_scheduled"),
        "{stages:?}"
    );
}

#[tokio::test]
async fn a_failing_target_gets_every_attempt_with_one_key_before_the_dead_letter() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(500)).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"id": 1, "amount": 1})).await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(&message["attempts"], &json!(3));
    assert_eq!(&message["maxAttempts"], &json!(3));
    assert_eq!(message["error"]["kind"], "status");
    let keys: Vec<_> = target
        .received()
        .iter()
        .map(|r| r.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, [id.clone(), id.clone(), id]);
    let deliveries: Vec<_> = message["trace"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|t| t["stage"] == "delivery")
        .cloned()
        .collect();
    assert_eq!(deliveries.len(), 3);
    for (at, delivery) in deliveries.iter().enumerate() {
        assert_eq!(delivery["attempt"], json!(at + 1));
        assert_eq!(delivery["status"], "failed");
        assert_eq!(delivery["response"]["status"], 500, "{delivery}");
    }
}

#[tokio::test]
async fn a_dead_letter_can_be_retried_and_only_a_dead_letter() {
    let app = TestApp::start().await;
    let target = FakeTarget::failing(3).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"id": 1, "amount": 1})).await;
    app.api.message_becomes(&id, "dead_letter").await;
    let answer = app
        .api
        .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
        .await
        .expect(202);
    assert_eq!(answer, json!({ "messageId": id }));
    let message = app.api.message_becomes(&id, "delivered").await;
    assert_eq!(message.get("error"), None);
    let again = app
        .api
        .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
        .await;
    again.expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn a_discarded_dead_letter_stays_so() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Reset).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"id": 1, "amount": 1})).await;
    let dead = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(dead["error"]["kind"], "network");
    let discarded = app
        .api
        .post(&format!("/api/v1/messages/{id}/discard"), &json!({}))
        .await
        .expect(200);
    assert_eq!(discarded["status"], "discarded");
    app.api
        .post(&format!("/api/v1/messages/{id}/discard"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    app.api
        .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn retries_in_bulk_take_the_dead_letters_that_the_filter_finds() {
    let app = TestApp::start().await;
    let target = FakeTarget::failing(9).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(app.api.webhook(&url, &json!({"id": n, "amount": 1})).await);
    }
    for id in &ids {
        app.api.message_becomes(id, "dead_letter").await;
    }
    let delivered = app.api.webhook(&url, &json!({"id": 9, "amount": 1})).await;
    app.api.message_becomes(&delivered, "delivered").await;
    let retry = async |filter: Value| app.api.post("/api/v1/messages/retry", &filter).await;
    let wrong = retry(json!({"flowId": flow, "status": "delivered"})).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
    let named = retry(json!({"flowId": flow, "ids": [ids[0], delivered]})).await;
    let named = named.expect(202);
    assert_eq!(named["count"], 1);
    assert_eq!(named["messageIds"], json!([ids[0]]));
    app.api.message_becomes(&ids[0], "delivered").await;

    // Ids that no message of the flow has are named, and nothing is done.
    let yaml = FLOW.replacen("flow: ", "flow: other_", 1);
    let (other, _) = app.api.deployed(&yaml).await;
    for verb in ["retry", "replay"] {
        let path = format!("/api/v1/messages/{verb}");
        let wrong = json!({"flowId": flow, "ids": [ids[1], "msg_nope", "msg_nope"]});
        let wrong = app.api.post(&path, &wrong).await;
        let error = wrong.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(error[0]["field"], "ids");
        let message = error[0]["message"].as_str().unwrap();
        assert_eq!(message, r#"no message of this flow has the id "msg_nope""#);
        let elsewhere = app
            .api
            .post(&path, &json!({"flowId": other, "ids": [ids[1]]}))
            .await;
        let error = elsewhere.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(error[0]["field"], "ids");
    }
    assert_eq!(app.api.message(&ids[1]).await["status"], "dead_letter");
    let rest = retry(json!({ "flowId": flow })).await.expect(202);
    assert_eq!(rest["count"], 2);
    assert_eq!(rest["messageIds"], json!(ids[1..]));
    for id in &ids {
        app.api.message_becomes(id, "delivered").await;
    }
}

#[tokio::test]
async fn a_retry_after_makes_the_wait_longer() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, earlier| {
        let headers = vec![("retry-after".to_owned(), "3600".to_owned())];
        if earlier == 0 {
            Reply::Answer(429, headers, String::new())
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"id": 1, "amount": 1})).await;
    let message = app.api.message_becomes(&id, "retrying").await;
    let due: i64 = millis(&message["nextAttemptAt"]) - millis(&message["receivedAt"]);
    assert!(due >= 3_600_000, "{message}");
}

fn millis(value: &serde_json::Value) -> i64 {
    kanat_model::Timestamp::parse(value.as_str().unwrap())
        .unwrap()
        .as_millis()
}
