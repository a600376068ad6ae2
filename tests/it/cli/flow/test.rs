//! `kanat flow test`: what a person gives, and what it shows.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::FLOW;
use crate::schedule::{schedule_of, scheduled};

#[tokio::test]
async fn a_scheduled_flow_is_tested_without_data() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    cli.file(
        "flow.yaml",
        &scheduled("yearly", "30 12 29 2 *", "Europe/Berlin"),
    );
    cli.run(&["flow", "create", "flow.yaml"]).await.expect();
    let tested = cli.run(&["flow", "test", "yearly"]).await.json();
    assert_eq!(tested["by_hand"], false);
    let due = tested["due"].as_str().unwrap();
    assert!(due.ends_with("-02-29T11:30:00.000Z"), "{due}");

    cli.file("flow.yaml", FLOW);
    cli.run(&["flow", "create", "flow.yaml"]).await.expect();
    let missing = cli.run(&["flow", "test", "by-hand"]).await.fails(1);
    assert!(missing.contains("sampleData: is required"), "{missing}");
    assert!(missing.contains("--data FILE"), "{missing}");
}

#[tokio::test]
async fn the_payload_of_a_scheduled_test_names_the_schedule() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = scheduled("daily", "0 6 * * *", "UTC")
        .replace("  by_hand: source.manual\n", "  payload: source\n");
    let draft = app.api.flow(&yaml).await;
    let test = async |flow: &str| {
        let path = format!("/api/v1/flows/{flow}/test");
        app.api.post(&path, &json!({})).await.expect(200)
    };
    let tested = test(&draft).await;
    let payload = &tested["output"]["payload"];
    assert_eq!(payload["schedule_id"], "sch_test");
    assert_eq!(payload["timezone"], "UTC");
    assert_eq!(payload["manual"], false);
    let path = format!("/api/v1/flows/{draft}/deploy");
    app.api.post(&path, &json!({})).await.expect(200);
    let schedule = schedule_of(&app.api, &draft).await;
    let tested = test(&draft).await;
    let payload = &tested["output"]["payload"];
    assert_eq!(payload["schedule_id"], schedule["id"]);
    assert_eq!(payload["scheduled_at"], schedule["nextRunAt"]);
}

#[tokio::test]
async fn a_form_is_tested_as_it_comes_in() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let mapped = "flow: order-form\nsource:\n  trigger: webhook\ntarget:\n  connector: erp\n  \
                  endpoint: /in\nmapping:\n  payload: source\n";
    let (_, url) = app.api.deployed(mapped).await;
    let form = "id=7&tag=a+b&tag=%C3%A4";
    let sent = "application/x-www-form-urlencoded; charset=utf-8";
    let caller = app.api.without_key();
    caller.raw("POST", &url, sent, form).await.expect(202);
    let received = target.arrivals(1).await[0].json();
    assert_eq!(
        received["payload"],
        json!({ "id": "7", "tag": ["a b", "ä"] })
    );

    let cli = Cli::of(&app);
    cli.file("order.form", &format!("{form}\n"));
    let header = format!("Content-Type: {sent}");
    let test = ["flow", "test", "order-form", "--header", &header, "--data"];
    let tested = cli.run(&[&test[..], &["order.form"]].concat()).await;
    assert_eq!(tested.json(), received);
    cli.file("order.json", r#"{"id": "7"}"#);
    let plain = ["flow", "test", "order-form", "--data", "order.json"];
    let tested = cli.run(&plain).await.json();
    assert_eq!(tested["payload"], json!({ "id": "7" }));

    cli.file("broken.form", "id=%FF");
    let broken = cli.run(&[&test[..], &["broken.form"]].concat()).await;
    let broken = broken.fails(1);
    assert!(
        broken.contains("the form field \"id\" is not UTF-8"),
        "{broken}"
    );
}

#[tokio::test]
async fn a_form_without_a_mapping_is_shown_byte_for_byte() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let id = app.api.flow(&crate::webhook::passthrough("forms")).await;
    let body = json!({
        "sampleData": "id=7&tag=a+b",
        "headers": { "content-type": "application/x-www-form-urlencoded" },
    });
    let path = format!("/api/v1/flows/{id}/test");
    let tested = app.api.post(&path, &body).await.expect(200);
    assert_eq!(tested["output"], json!({ "id": "7", "tag": "a b" }));
    let trace = tested["trace"].as_array().unwrap();
    let delivery = trace.iter().find(|record| record["stage"] == "delivery");
    let request = &delivery.unwrap()["request"];
    assert_eq!(request["body"], "id=7&tag=a+b");
    assert_eq!(
        request["headers"]["content-type"],
        "application/x-www-form-urlencoded"
    );
}

#[tokio::test]
async fn a_part_of_a_template_that_renders_to_nothing_is_named() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"flow: greeting
source: {trigger: webhook}
steps:
  - name: note
    action: http.post
    connector: erp
    params:
      path: /notes
      body: {lines: ["Dear {{ source.title }} {{ source.name }}", "{{ source.none }}"]}
target:
  connector: erp
  endpoint: /in/no-{{ source.number }}
  headers: {X-Of: "of {{ source.sender }}"}
mapping:
  text: "Hello {{ source.name }}, {{ source.title | default('') }}!"
  whole: "{{ source.name }}"
  lines:
    each: source.lines
    map: {label: "{{ item.qty }} x {{ item.sku }}"}
"#;
    let cli = Cli::of(&app);
    cli.file("flow.yaml", yaml);
    cli.file(
        "data.json",
        r#"{"name": null, "title": "Dr.", "lines": [{"qty": 1, "sku": "a"}, {"qty": 2}]}"#,
    );
    cli.run(&["flow", "create", "flow.yaml"]).await.expect();
    let test = ["flow", "test", "greeting", "--data", "data.json"];
    let tested = cli.run(&test).await;
    for warning in [
        "mapped text: source.name is null and renders to nothing",
        "mapped lines[1].label: item.sku is undefined and renders to nothing",
        "step note.params.body.lines[0]: source.name is null and renders to nothing",
        "delivery target.endpoint: source.number is undefined and renders to nothing",
        "delivery target.headers.x-of: source.sender is undefined and renders to nothing",
    ] {
        assert_eq!(
            tested.stderr.matches(warning).count(),
            1,
            "{warning}: {}",
            tested.stderr
        );
    }
    assert_eq!(
        tested.stderr.matches("renders to nothing").count(),
        5,
        "{}",
        tested.stderr
    );
    let output = tested.json();
    assert_eq!(output["text"], "Hello , Dr.!");
    assert_eq!(output["lines"][1]["label"], "2 x ");
}

#[tokio::test]
async fn a_step_that_reads_the_caller_of_a_published_api_is_tested() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    let flow = r#"flow: slots
version: 1
source: {trigger: api}
steps:
  - name: carrier
    action: http.get
    connector: erp
    params: {path: "customers/{{ trigger.api.consumer }}"}
mapping:
  slot: source.slot
"#;
    cli.file("slots.yaml", flow);
    cli.run(&["flow", "create", "slots.yaml"]).await.expect();
    cli.file("call.json", r#"{"slot": 7}"#);
    let test = ["flow", "test", "slots", "--data", "call.json"];
    let unknown = cli.run(&test).await;
    let shown = unknown.stderr;
    assert!(
        shown.contains("step carrier: trigger.api is not known in a test: give api"),
        "{shown}"
    );
    assert!(shown.contains("--api NAME=VALUE"), "{shown}");
    let known = cli
        .run(&[&test[..], &["--api", "consumer=acme"]].concat())
        .await;
    let shown = known.stderr;
    assert!(
        shown.contains(&format!(
            "step carrier: GET {}/customers/acme",
            target.url()
        )),
        "{shown}"
    );
}
