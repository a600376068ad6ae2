//! Steps run in order through connector instances, and their outputs go on to later steps, the
//! mapping and the target.

use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, calls, instances, made};

#[tokio::test]
async fn steps_and_target_run_in_order_with_each_other_s_outputs() {
    let app = TestApp::start().await;
    let mail = FakeTarget::scripted(|_, _| {
        Reply::Answer(202, Vec::new(), r#"{"job_id":"j-1"}"#.to_owned())
    })
    .await;
    let desk = FakeTarget::scripted(|_, _| made(r#"{"ticket":{"id":35436}}"#)).await;
    let erp = FakeTarget::start().await;
    instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": "ann@shop.example"}))
        .await;
    let message = app.api.message_becomes(&id, "delivered").await;

    let [contact] = &mail.received()[..] else {
        panic!("one call")
    };
    assert_eq!(contact.method.as_str(), "PUT");
    assert_eq!(contact.path.as_str(), "/v3/marketing/contacts");
    assert_eq!(
        contact.json(),
        json!({"contacts": [{"email": "ann@shop.example"}]})
    );
    assert_eq!(contact.header("authorization"), "Bearer SG.s3cr3t");
    assert_eq!(contact.header("content-type"), "application/json");
    let [ticket] = &desk.received()[..] else {
        panic!("one call")
    };
    assert_eq!(ticket.method.as_str(), "POST");
    assert_eq!(ticket.path.as_str(), "/api/v2/tickets");
    let expected = json!({"ticket": {
        "subject": "Welcome Ann", "comment": {"body": "job j-1", "public": false}, "tags": ["new"],
    }});
    assert_eq!(ticket.json(), expected);
    let [delivered] = &erp.received()[..] else {
        panic!("one call")
    };
    assert_eq!(delivered.method.as_str(), "PUT");
    assert_eq!(delivered.path.as_str(), "/customers/Ann");
    assert_eq!(
        delivered.json(),
        json!({"email": "ann@shop.example", "ticket": 35436, "answered": 201})
    );
    let keys = [contact, ticket, delivered].map(|call| call.header("idempotency-key").to_owned());
    assert_eq!(
        keys,
        [format!("{id}.contact"), format!("{id}.ticket"), id.clone()]
    );

    let trace = message["trace"].as_array().unwrap();
    let stages: Vec<_> = trace
        .iter()
        .map(|t| {
            (
                t["stage"].as_str().unwrap(),
                t["name"].as_str().unwrap(),
                t["status"] == "ok",
            )
        })
        .collect();
    let expected = [
        ("received", "webhook", true),
        ("step", "contact", true),
        ("step", "ticket", true),
        ("mapped", "mapping", true),
        ("delivery", "target", true),
    ];
    assert_eq!(stages, expected);
    assert_eq!(
        trace[2]["request"]["body"]["ticket"]["subject"],
        "Welcome Ann"
    );
    assert_eq!(
        trace[2]["response"]["body"],
        json!({"ticket": {"id": 35436}})
    );
    assert!(!message.to_string().contains("s3cr3t"), "{message}");
}

#[tokio::test]
async fn a_flow_with_steps_alone_is_delivered_by_the_last_one() {
    let app = TestApp::start().await;
    let mail = FakeTarget::start().await;
    let desk = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    instances(&app.api, &desk, &mail, &erp).await;
    let yaml = r#"flow: watch
version: 1
source:
  trigger: manual
steps:
  - name: find
    action: support-ticketing.search
    params: { query: "type:ticket {{ source.text }}" }
  - name: tell
    action: email-delivery.list-templates
    params: { page_size: 10 }
    when: source.tell
"#;
    let (flow, _) = app.api.deployed(yaml).await;
    for (payload, steps) in [
        (json!({"text": "a&b"}), "skipped"),
        (json!({"text": "a&b", "tell": 1}), "ok"),
    ] {
        let run = app
            .api
            .post(
                &format!("/api/v1/flows/{flow}/run"),
                &json!({ "payload": payload }),
            )
            .await
            .expect(202);
        let message = app
            .api
            .message_becomes(run["messageId"].as_str().unwrap(), "delivered")
            .await;
        assert_eq!(&message["trace"][2]["name"], &json!("tell"));
        assert_eq!(&message["trace"][2]["status"], &json!(steps));
    }
    assert_eq!(
        calls(&desk),
        ["GET /api/v2/search?query=type%3Aticket%20a%26b"; 2]
    );
    assert_eq!(calls(&mail), ["GET /v3/templates?page_size=10"]);
    assert!(
        desk.received()
            .iter()
            .chain(&mail.received())
            .all(|call| call.body.is_empty())
    );
}

#[tokio::test]
async fn a_step_that_rejects_fails_its_message_at_once() {
    let app = TestApp::start().await;
    let mail = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    let desk = FakeTarget::scripted(|_, _| status(503)).await;
    instances(&app.api, &desk, &mail, &erp).await;
    let yaml = FLOW.replace(
        "    connector: desk\n",
        "    connector: desk\n    on_failure: reject\n",
    );
    let (_, url) = app.api.deployed(&yaml).await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": "a@b.example"}))
        .await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(&message["attempts"], &json!(1));
    assert_eq!(&message["error"]["kind"], &json!("rejected"));
    let told = format!("POST {}/api/v2/tickets answered 503", desk.url());
    assert!(
        message["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with(&told),
        "{message}"
    );
    assert_eq!(message["error"]["field"], "steps.ticket");
    assert_eq!(desk.received().len(), 1);
    assert_eq!(erp.received().len(), 0);
}

#[tokio::test]
async fn params_are_checked_at_deploy_where_they_are_literal_and_at_run_time_otherwise() {
    let app = TestApp::start().await;
    let mail = FakeTarget::start().await;
    let desk = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    instances(&app.api, &desk, &mail, &erp).await;
    let flow = app
        .api
        .flow(
            &FLOW
                .replace("tags: [new]", "tags: new")
                .replace("contacts: [", "contact: ["),
        )
        .await;
    let refused = app
        .api
        .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
        .await;
    let told = refused.expect_error(400, "INVALID_ARGUMENT").to_string();
    for part in [
        "steps[0].params",
        "unknown param",
        "steps[1].params.ticket.tags",
        "expected array",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let (_, url) = app
        .api
        .deployed(&FLOW.replace("flow: welcome", "flow: checked"))
        .await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": 7}))
        .await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(&message["attempts"], &json!(1));
    assert_eq!(&message["error"]["kind"], &json!("mapping"));
    assert_eq!(
        message["error"]["field"],
        "steps.contact.params.contacts[0].email"
    );
    assert!(mail.received().is_empty() && desk.received().is_empty());
}

#[tokio::test]
async fn a_step_without_a_connector_needs_exactly_one_instance_of_its_entry() {
    let app = TestApp::start().await;
    let mail = FakeTarget::start().await;
    let desk = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    instances(&app.api, &desk, &mail, &erp).await;
    let config = json!({ "api_key": "SG.other", "base_url": mail.url() });
    super::instance(&app.api, "email-delivery", "second", &config).await;
    let flow = app.api.flow(FLOW).await;
    let refused = app
        .api
        .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
        .await;
    let told = refused.expect_error(400, "INVALID_ARGUMENT").to_string();
    assert!(told.contains("2 instances of"), "{told}");
    let yaml = FLOW.replace("add-contacts\n", "add-contacts\n    connector: second\n");
    app.api
        .put(
            &format!("/api/v1/flows/{flow}"),
            &json!({ "yamlConfig": yaml }),
        )
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
        .await
        .expect(200);
}
