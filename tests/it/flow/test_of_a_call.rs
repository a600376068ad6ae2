//! `POST /flows/{id}/test` of a flow that published APIs call: what it knows of the call.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

const FLOW: &str = r"flow: slots
version: 1
source: {trigger: api}
ordering_key: trigger.api.consumer
when: trigger.api.consumer != 'nobody'
target:
  connector: erp
  endpoint: /customers/{{ trigger.api.consumer }}/slots
  method: POST
mapping:
  slot: source.slot
  by: trigger.api.consumer
";

/// Records of the trace that say that something is not known, as `stage name: error`.
fn not_known(tested: &Value) -> Vec<String> {
    let records = tested["trace"].as_array().unwrap().iter();
    records
        .filter(|record| record["error"].as_str().is_some())
        .map(|record| {
            let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}: {}", text("stage"), text("name"), text("error"))
        })
        .collect()
}

#[tokio::test]
async fn what_reads_the_call_is_not_known_until_it_is_given() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/flows/{}/test", app.api.flow(FLOW).await);
    let sample = json!({"slot": 7});
    let tested = app.api.post(&path, &json!({"sampleData": sample})).await;
    let tested = tested.expect(200);
    let note = "trigger.api is not known in a test: give api";
    assert_eq!(tested["errors"], json!([]), "{tested}");
    assert_eq!(tested["matched"], json!(true));
    assert_eq!(tested["output"], json!({"slot": 7}));
    assert_eq!(
        not_known(&tested),
        [
            format!("validated when: {note}"),
            format!("mapped mapping: left out: by: {note}"),
            format!("delivery target.endpoint: {note}"),
        ],
        "{tested}"
    );

    let given = json!({"sampleData": sample, "api": {"consumer": "acme", "version": "v2"}});
    let tested = app.api.post(&path, &given).await.expect(200);
    assert_eq!(tested["output"], json!({"slot": 7, "by": "acme"}));
    assert_eq!(not_known(&tested), [""; 0], "{tested}");
    let records = tested["trace"].as_array().unwrap();
    let delivery = records.iter().find(|record| record["stage"] == "delivery");
    assert_eq!(
        delivery.unwrap()["request"]["url"],
        format!("{}/customers/acme/slots", target.url())
    );

    let given = json!({"sampleData": sample, "api": {"consumer": "nobody"}});
    let tested = app.api.post(&path, &given).await.expect(200);
    assert_eq!(tested["matched"], json!(false));
    // A call without a key has no consumer.
    let given = json!({"sampleData": sample, "api": {"consumer": null}});
    let tested = app.api.post(&path, &given).await.expect(200);
    assert_eq!(tested["errors"][0]["field"], "target.endpoint", "{tested}");
}

#[tokio::test]
async fn a_call_that_cannot_be_is_refused() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/flows/{}/test", app.api.flow(FLOW).await);
    for (api, field) in [
        (json!("acme"), "api"),
        (json!({"consumer": 7}), "api.consumer"),
        (json!({"customer": "acme"}), "api.customer"),
    ] {
        let given = json!({"sampleData": {}, "api": api});
        let refused = app.api.post(&path, &given).await;
        let details = refused.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field);
    }
    let webhook = FLOW
        .replace("slots", "hook")
        .replace("trigger: api", "trigger: webhook");
    let path = format!("/api/v1/flows/{}/test", app.api.flow(&webhook).await);
    let given = json!({"sampleData": {}, "api": {"consumer": "acme"}});
    let refused = app.api.post(&path, &given).await;
    let details = refused.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "api");
}
