//! `POST /flows/{id}/test`: a run of the draft on sample data that sends nothing.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const FLOW: &str = r"flow: tried
version: 1
source:
  trigger: webhook
when: source.total > 0
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  order_id: source.id | required
  total: source.total | decimal(2)
  country: source.country | uppercase | lookup(countries, ZZ)
  lines:
    each: source.items
    map:
      sku: item.sku | uppercase
";

#[tokio::test]
async fn gives_the_output_the_errors_and_whether_the_condition_held() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let table = app
        .api
        .post("/api/v1/lookup-tables", &json!({"name": "countries"}))
        .await
        .expect(201);
    let entries = format!(
        "/api/v1/lookup-tables/{}/entries",
        table["id"].as_str().unwrap()
    );
    app.api
        .put(
            &entries,
            &json!({"entries": [{"key": "DE", "value": "276"}]}),
        )
        .await
        .expect(200);
    let id = app.api.flow(FLOW).await;
    let path = format!("/api/v1/flows/{id}/test");

    let sample = concat!(
        r#"{"sampleData": {"id": 9007199254740993, "total": 149.5, "country": "de", "#,
        r#""items": [{"sku": "a"}]}}"#
    );
    let answer = app.api.raw("POST", &path, "application/json", sample).await;
    let body = answer.clone().expect(200);
    assert_eq!(&body["matched"], &json!(true));
    assert_eq!(&body["errors"], &json!([]));
    let expected =
        r#"{"order_id":9007199254740993,"total":"149.50","country":"276","lines":[{"sku":"A"}]}"#;
    assert!(answer.text.contains(expected), "{}", answer.text);
    assert!(!body["trace"].as_array().unwrap().is_empty());

    let unmatched = app
        .api
        .post(&path, &json!({"sampleData": {"id": 1, "total": 0}}))
        .await
        .expect(200);
    assert_eq!(&unmatched["matched"], &json!(false));
    assert_eq!(unmatched.get("output"), None);

    let failing = app
        .api
        .post(&path, &json!({"sampleData": {"total": 1}}))
        .await
        .expect(200);
    assert_eq!(failing["errors"][0]["field"], "order_id");
    assert_eq!(failing["errors"][0]["expression"], "source.id | required");

    let wrong = json!({"sampleData": {"total": 1, "country": [], "items": 7}});
    let failing = app.api.post(&path, &wrong).await.expect(200);
    let fields: Vec<_> = failing["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["order_id", "country", "lines"]);
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_test_may_do_no_more_work_than_a_run() {
    let app = TestApp::start().await;
    let flow = r"flow: squares
version: 1
source: {trigger: api}
mapping:
  lines:
    each: source.items
    map: {first: source.items | first}
";
    let id = app.api.flow(flow).await;
    let path = format!("/api/v1/flows/{id}/test");
    let sample = json!({"sampleData": {"items": vec![1; 40_000]}});
    let answer = app.api.post(&path, &sample).await.expect(200);
    let said = answer["errors"][0]["message"].as_str().unwrap();
    assert!(said.contains("reads more than 512 MiB"), "{answer}");
    let expression = answer["errors"][0]["expression"].as_str();
    assert_eq!(expression, Some("source.items | first"));
}

#[tokio::test]
async fn steps_are_shown_and_not_called() {
    let app = TestApp::start().await;
    let desk = FakeTarget::start().await;
    let mail = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    crate::steps::instances(&app.api, &desk, &mail, &erp).await;
    let id = app.api.flow(crate::steps::FLOW).await;
    let path = format!("/api/v1/flows/{id}/test");
    let sample = json!({"sampleData": {"name": "Ann", "email": "a@b.example"}});
    let answer = app.api.post(&path, &sample).await;
    assert!(!answer.text.contains("s3cr3t"), "{}", answer.text);
    let body = answer.expect(200);
    assert_eq!(body["errors"], json!([]), "{body}");
    let entries = body["trace"].as_array().unwrap();
    let steps: Vec<_> = entries
        .iter()
        .filter(|entry| entry["stage"] == "step")
        .collect();
    let names: Vec<_> = steps
        .iter()
        .map(|entry| (&entry["name"], &entry["status"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("contact"), &json!("skipped")),
            (&json!("ticket"), &json!("skipped"))
        ],
        "{body}"
    );
    assert_eq!(steps[0]["request"]["method"], "PUT");
    assert_eq!(
        steps[0]["request"]["url"],
        format!("{}/v3/marketing/contacts", mail.url())
    );
    assert_eq!(
        steps[0]["request"]["body"],
        json!({"contacts": [{"email": "a@b.example"}]})
    );
    // What an earlier step would have answered is missing, and the test says so.
    let note = steps[1]["error"].as_str().unwrap();
    assert!(
        note.contains("\"contact\" is not known in a test: give stepOutputs"),
        "{note}"
    );
    assert_eq!(
        steps[1]["request"]["body"]["ticket"]["subject"],
        "Welcome Ann"
    );
    assert_eq!(body["output"], json!({"email": "a@b.example"}));
    let wrong = app
        .api
        .post(
            &path,
            &json!({"sampleData": {"name": "Ann", "email": {"not": "a text"}}}),
        )
        .await
        .expect(200);
    assert_eq!(
        wrong["errors"][0]["field"], "steps.contact.params.contacts[0].email",
        "{wrong}"
    );
    let contact = wrong["trace"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["stage"] == "step")
        .unwrap();
    assert_eq!(contact["status"], "failed");
    assert!(
        contact["error"]
            .as_str()
            .unwrap()
            .contains("steps.contact.params.contacts[0].email"),
        "{contact}"
    );
    let outputs = json!({"contact": {"job_id": "j1"}, "ticket": {"ticket": {"id": 7}}});
    let known =
        json!({"sampleData": {"name": "Ann", "email": "a@b.example"}, "stepOutputs": outputs});
    let known = app.api.post(&path, &known).await.expect(200);
    assert_eq!(
        known["output"],
        json!({"email": "a@b.example", "ticket": 7, "answered": 200}),
        "{known}"
    );
    let ticket = known["trace"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == "ticket")
        .unwrap();
    assert_eq!(
        ticket["request"]["body"]["ticket"]["comment"]["body"],
        "job j1"
    );
    let unknown = json!({"sampleData": {}, "stepOutputs": {"tickt": {}}});
    app.api
        .post(&path, &unknown)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert!(desk.received().is_empty() && mail.received().is_empty() && erp.received().is_empty());
}

const ASKING: &str = r"flow: asking
version: 1
source:
  trigger: webhook
steps:
  - name: ask
    action: http.get
    connector: erp
    params: { path: ask }
  - name: tell
    action: http.post
    connector: erp
    params: { path: tell }
target:
  connector: erp
  endpoint: /in
mapping:
  id: source.id
  subscribed: steps.ask.status == 200
  told: coalesce(steps.tell.output.name, 'nobody')
  both.asked: steps.ask.status
  both.told: steps.tell.status
";

#[tokio::test]
async fn a_field_that_reads_a_step_without_an_output_is_left_out_and_named() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/flows/{}/test", app.api.flow(ASKING).await);
    let tested = async |outputs: serde_json::Value| {
        let given = json!({"sampleData": {"id": 1}, "stepOutputs": outputs});
        let tested = app.api.post(&path, &given).await.expect(200);
        assert_eq!(tested["errors"], json!([]), "{tested}");
        let records = tested["trace"].as_array().unwrap().clone();
        let mapped = records.into_iter().find(|entry| entry["stage"] == "mapped");
        (tested["output"].clone(), mapped.unwrap())
    };
    let (output, mapped) = tested(json!({})).await;
    assert_eq!(output, json!({"id": 1}));
    assert_eq!(mapped["status"], "warning");
    assert_eq!(
        mapped["error"],
        "left out: subscribed, told, both.asked, both.told: the outputs of steps \"ask\", \"tell\" \
         are not known in a test: give stepOutputs"
    );
    let (output, mapped) = tested(json!({"ask": {}})).await;
    let asked = json!({"id": 1, "subscribed": true, "both": {"asked": 200}});
    assert_eq!(output, asked);
    assert_eq!(
        mapped["error"],
        "left out: told, both.told: the output of step \"tell\" is not known in a test: give \
         stepOutputs"
    );
    let (output, mapped) = tested(json!({"ask": {}, "tell": {"name": "Ann"}})).await;
    assert_eq!(output["told"], "Ann");
    assert_eq!(mapped["status"], "ok");
}

const CALLS: &str = r#"flow: calls
version: 1
source:
  trigger: webhook
when: trigger.headers.x-event == 'opened'
target:
  connector: erp
  endpoint: /{{ trigger.path_params.shop }}/orders/{{ source.id }}
  method: PUT
  headers:
    X-Page: "{{ trigger.query.page }}"
    X-Sent-By: "{{ trigger.headers.authorization }}"
mapping:
  how: trigger.method
"#;

#[tokio::test]
async fn the_call_is_rendered_and_fails_as_in_a_run() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/flows/{}/test", app.api.flow(CALLS).await);
    let given = json!({
        "sampleData": {"id": "a b"},
        "headers": {"X-Event": "opened", "Authorization": "Bearer s3cr3t"},
        "query": {"page": "2"},
        "method": "PATCH",
        "pathParams": {"shop": "eu"},
    });
    let body = app.api.post(&path, &given).await.expect(200);
    assert_eq!(&body["matched"], &json!(true));
    assert_eq!(&body["errors"], &json!([]));
    assert_eq!(&body["output"], &json!({"how": "PATCH"}));
    let stages: Vec<_> = body["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["received", "validated", "mapped", "delivery"]);
    let request = &body["trace"][3]["request"];
    assert_eq!(request["method"], "PUT");
    assert_eq!(request["url"], format!("{}/eu/orders/a%20b", target.url()));
    assert_eq!(&request["headers"]["x-page"], &json!("2"));
    assert_eq!(&request["headers"]["x-sent-by"], &json!("********"));
    assert_eq!(
        &request["headers"]["content-type"],
        &json!("application/json")
    );
    assert_eq!(&request["body"], &json!({"how": "PATCH"}));

    let empty = json!({
        "sampleData": {"id": ""},
        "headers": {"x-event": "opened"},
        "pathParams": {"shop": "eu"},
    });
    let body = app.api.post(&path, &empty).await.expect(200);
    assert_eq!(body["errors"][0]["field"], "target.endpoint", "{body}");
    let filtered = app
        .api
        .post(&path, &json!({"sampleData": {}}))
        .await
        .expect(200);
    assert_eq!(&filtered["matched"], &json!(false));
    assert_eq!(&filtered["errors"], &json!([]));
    for wrong in [
        json!({"headers": []}),
        json!({"headers": {"a b": "c"}}),
        json!({"query": {"a": 1}}),
        json!({"method": "A B"}),
    ] {
        let mut given = json!({"sampleData": {}});
        given
            .as_object_mut()
            .unwrap()
            .extend(wrong.as_object().unwrap().clone());
        app.api
            .post(&path, &given)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
    }
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_field_of_the_mapping_may_have_the_name_of_the_condition() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r"flow: parcel
version: 1
source:
  trigger: webhook
when: source.qty > 3
target:
  connector: erp
  endpoint: /in
mapping:
  when: source.at | date('YYYY')
";
    let id = app.api.flow(yaml).await;
    let sample = json!({ "sampleData": { "qty": 5, "at": "yesterday" } });
    let tested = app
        .api
        .post(&format!("/api/v1/flows/{id}/test"), &sample)
        .await
        .expect(200);
    assert_eq!(&tested["matched"], &json!(true));
    assert_eq!(tested["errors"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_key_that_a_message_lacks_is_shown_in_the_test_and_in_the_trace() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r"flow: keyed
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /in
ordering_key: source.id
idempotency_key: source.event
";
    let (id, _) = app.api.deployed(yaml).await;
    let warnings = |trace: &serde_json::Value| -> Vec<(String, String)> {
        let records = trace.as_array().unwrap().iter();
        let text =
            |record: &serde_json::Value, name: &str| record[name].as_str().map(str::to_owned);
        records
            .filter(|record| record["stage"] == "validated" && record["status"] == "warning")
            .map(|record| {
                (
                    text(record, "name").unwrap(),
                    text(record, "error").unwrap(),
                )
            })
            .collect()
    };
    let path = format!("/api/v1/flows/{id}");
    let sample = json!({ "sampleData": { "id": 7 } });
    let tested = app
        .api
        .post(&format!("{path}/test"), &sample)
        .await
        .expect(200);
    let found = warnings(&tested["trace"]);
    assert_eq!(found.len(), 1, "{tested:?}");
    assert_eq!(found[0].0, "idempotency_key");
    assert!(
        found[0].1.contains("the message has no idempotency_key"),
        "{found:?}"
    );
    let run = app
        .api
        .post(&format!("{path}/run"), &json!({ "payload": { "id": 7 } }))
        .await
        .expect(202);
    let message = app
        .api
        .message_becomes(run["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(warnings(&message["trace"]), found);
}

#[tokio::test]
async fn names_the_fields_and_conditions_that_compare_a_text_with_a_number() {
    let app = TestApp::start().await;
    let definition = r"flow: compared
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
mapping:
  large: source.csv | parse_csv | where(item.qty > 5) | length
  kind: source.csv
";
    let sample = json!({ "sampleData": { "csv": "sku,qty\na,10\n" } });
    let id = app.api.flow(definition).await;
    let path = format!("/api/v1/flows/{id}/test");
    let tested = app.api.post(&path, &sample).await.expect(200);
    let warnings = |tested: &serde_json::Value| -> Vec<serde_json::Value> {
        let trace = tested["trace"].as_array().unwrap();
        let named = trace.iter().filter(|record| record["stage"] != "delivery");
        let named = named.filter(|record| !record["error"].is_null());
        named
            .map(|record| json!([record["name"], record["status"], record["error"]]))
            .collect()
    };
    let named = |subject: &str| {
        format!(r#"the {subject} compares a text ("10") with a number; use item.qty | number"#)
    };
    assert_eq!(
        warnings(&tested),
        [json!(["large", "warning", named("expression")])]
    );
    let filtering = definition.replace(
        "target:",
        "when: source.csv | parse_csv | any(item.qty > 5)\ntarget:",
    );
    let update = json!({ "yamlConfig": filtering });
    app.api
        .patch(&format!("/api/v1/flows/{id}"), &update)
        .await
        .expect(200);
    let tested = app.api.post(&path, &sample).await.expect(200);
    assert_eq!(&tested["matched"], &json!(false));
    assert_eq!(
        warnings(&tested),
        [json!(["when", "filtered", named("condition")])]
    );
}

/// A step is skipped by its condition, whatever its params read.
#[tokio::test]
async fn a_condition_that_is_known_is_judged_before_params_that_are_not() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"
name: two
source: { trigger: manual }
steps:
  - name: a
    action: http.get
    connector: erp
    params: { path: /a }
  - name: b
    when: source.go
    action: http.post
    connector: erp
    params: { path: /b, body: "{{ steps.a.output }}" }
target: { connector: erp, endpoint: /c }
mapping: { b: "steps.b.output.id | default('none')" }
"#;
    let id = app.api.flow(yaml).await;
    let path = format!("/api/v1/flows/{id}/test");
    let test = |go: bool| {
        app.api
            .post_owned(&path, &json!({"sampleData": {"go": go}}))
    };
    let skipped = test(false).await.expect(200);
    assert_eq!(skipped["output"], json!({"b": "none"}), "{skipped}");
    let unknown = test(true).await.expect(200);
    assert_eq!(unknown["output"], json!({}), "{unknown}");
    let body = json!({"sampleData": {"go": true, "n": "abc"}});
    let failing = yaml.replace("when: source.go", "when: (source.n | number) > 1");
    let id = app
        .api
        .flow(&failing.replace("name: two", "name: three"))
        .await;
    let path = format!("/api/v1/flows/{id}/test");
    let failed = app.api.post(&path, &body).await.expect(200);
    assert_eq!(failed["errors"][0]["field"], "steps.b.when", "{failed}");
}
