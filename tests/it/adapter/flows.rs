//! Adapters in deployed flows: before the mapping, in it, and after it.

use kanat_tests::rest::text;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::json;

use super::{adapter, stages};

fn flow(name: &str, rest: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source: {{trigger: webhook}}
target: {{connector: erp, endpoint: /in}}
{rest}"
    )
}

async fn service() -> (TestApp, FakeTarget) {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    (app, target)
}

#[tokio::test]
async fn the_payload_is_reshaped_before_condition_and_mapping() {
    let (app, target) = service().await;
    let code = "function transform(input, context) {
  console.log(context.flow.name, context.message.attempt, context.trigger.method);
  return { ...input, total: input.lines.reduce((sum, line) => sum + line.qty, 0) };
}";
    adapter(&app.api, "totals", "transform", code).await;
    let rest = r"adapter: totals
when: source.total > 1
mapping:
  id: source.id
  total: source.total
";
    let (flow_id, url) = app.api.deployed(&flow("reshaped", rest)).await;
    let test = json!({ "sampleData": { "id": 7, "lines": [{ "qty": 2 }] }, "method": "PUT" });
    let tested = app
        .api
        .post(&format!("/api/v1/flows/{flow_id}/test"), &test)
        .await
        .expect(200);
    assert_eq!(&tested["output"], &json!({ "id": 7, "total": 2 }));
    assert_eq!(&tested["errors"], &json!([]));
    assert_eq!(
        stages(&tested, "adapted")[0]["response"]["logs"],
        json!(["reshaped 1 PUT"])
    );
    let sample = r#"{"id": 9007199254740993, "lines": [{"qty": 1}, {"qty": 2}]}"#;
    let answer = app
        .api
        .without_key()
        .raw("POST", &url, "application/json", sample)
        .await
        .expect(202);
    let message = app
        .api
        .message_becomes(answer["messageId"].as_str().unwrap(), "delivered")
        .await;
    let received = target.arrivals(1).await;
    assert_eq!(received[0].body, r#"{"id":9007199254740993,"total":3}"#);
    let adapted = stages(&message, "adapted");
    assert_eq!(&adapted[0]["name"], &json!("totals"), "{message}");
    assert_eq!(&adapted[0]["status"], &json!("ok"), "{message}");
    assert_eq!(adapted[0]["response"]["logs"], json!(["reshaped 1 POST"]));
    let filtered = app.api.webhook(&url, &json!({"lines": [{"qty": 1}]})).await;
    app.api.message_becomes(&filtered, "filtered").await;
}

#[tokio::test]
async fn without_a_mapping_the_adapters_output_goes_out() {
    let (app, target) = service().await;
    adapter(
        &app.api,
        "wrap",
        "transform",
        "const transform = (input) => ({ wrapped: input })",
    )
    .await;
    let (_, url) = app.api.deployed(&flow("wrapped", "adapter: wrap\n")).await;
    let id = Rest::send(
        app.api
            .without_key()
            .request("POST", &url)
            .header("content-type", "text/plain")
            .body("hello"),
    )
    .await;
    app.api
        .message_becomes(id.expect(202)["messageId"].as_str().unwrap(), "delivered")
        .await;
    let received = target.arrivals(1).await;
    assert_eq!(received[0].json(), json!({"wrapped": "hello"}));
    assert_eq!(received[0].header("content-type"), "application/json");
}

#[tokio::test]
async fn an_adapter_in_a_pipe_maps_values() {
    let (app, target) = service().await;
    adapter(
        &app.api,
        "initials",
        "transform",
        "const transform = (name) => name.split(' ').map((n) => n[0]).join('')",
    )
    .await;
    adapter(&app.api, "nothing", "transform", "function transform() {}").await;
    let rest = r"mapping:
  who: source.name | adapter(initials) | lowercase
  missing: source.none | adapter(initials)
  undefined: source.name | adapter(nothing)
  all:
    each: source.names
    map:
      i: item.name | adapter(initials)
";
    let (_, url) = app.api.deployed(&flow("piped", rest)).await;
    let payload = json!({"name": "Anna Vogel", "names": [{"name": "B C"}, {"name": "D E F"}]});
    let id = app.api.webhook(&url, &payload).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    assert_eq!(
        target.arrivals(1).await[0].json(),
        json!({"who": "av", "all": [{"i": "BC"}, {"i": "DEF"}]})
    );
    let calls: Vec<_> = stages(&message, "adapted")
        .iter()
        .map(|r| (&r["name"], &r["response"]["calls"]))
        .collect();
    assert_eq!(
        calls,
        [
            (&json!("initials"), &json!(3)),
            (&json!("nothing"), &json!(1))
        ]
    );
}

#[tokio::test]
async fn a_source_adapter_reads_the_body_and_a_target_adapter_writes_it() {
    let (app, target) = service().await;
    let csv = "const transform = (body) => ({ rows: body.trim().split('\\n').map((line) => \
               line.split(';')) })";
    adapter(&app.api, "csv", "source", csv).await;
    let (_, url) = app
        .api
        .deployed(&flow(
            "from-csv",
            "adapter: csv\nmapping:\n  first: source.rows[0][1]\n",
        ))
        .await;
    let sent = app
        .api
        .without_key()
        .raw("POST", &url, "text/csv", "a;b\nc;d\n")
        .await
        .expect(202);
    app.api
        .message_becomes(sent["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(target.arrivals(1).await[0].json(), json!({"first": "b"}));

    adapter(
        &app.api,
        "xml",
        "target",
        "const transform = (order) => `<order id=\"${order.id}\"/>`",
    )
    .await;
    let rest = "adapter: xml\nmapping:\n  id: source.id\n";
    let yaml = flow("to-xml", rest).replace(
        "endpoint: /in}",
        "endpoint: /in, headers: {Content-Type: application/xml}}",
    );
    let (_, url) = app.api.deployed(&yaml).await;
    let id = app.api.webhook(&url, &json!({"id": "SO-1"})).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    let received = target.arrivals(2).await;
    assert_eq!(received[1].body, "<order id=\"SO-1\"/>");
    assert_eq!(received[1].header("content-type"), "application/xml");
    assert_eq!(
        message["output"],
        json!({"id": "SO-1"}),
        "what the mapping gave"
    );
}

#[tokio::test]
async fn a_failure_is_a_dead_letter_with_line_and_column_and_is_not_retried() {
    let (app, target) = service().await;
    adapter(
        &app.api,
        "broken",
        "transform",
        "function transform(input) {\n  console.log('here');\n  return input.a.b;\n}",
    )
    .await;
    let retry = "on_error: {retry: 3x fixed(10ms)}\n";
    let (_, url) = app
        .api
        .deployed(&flow("whole", &format!("adapter: broken\n{retry}")))
        .await;
    let id = app.api.webhook(&url, &json!({})).await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(&message["attempts"], &json!(1), "{message}");
    assert_eq!(&message["error"]["kind"], &json!("adapter"), "{message}");
    let said = message["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("\"broken\"") && said.contains("line 3, column "),
        "{said}"
    );
    let adapted = stages(&message, "adapted");
    assert_eq!(&adapted[0]["status"], &json!("failed"));
    assert_eq!(&adapted[0]["response"]["logs"], &json!(["here"]));
    assert!(
        adapted[0]["error"]
            .as_str()
            .unwrap()
            .contains("line 3, column "),
        "{message}"
    );

    let (_, url) = app
        .api
        .deployed(&flow(
            "field",
            &format!("mapping:\n  x: source | adapter(broken)\n{retry}"),
        ))
        .await;
    let id = app.api.webhook(&url, &json!({})).await;
    let message = app.api.message_becomes(&id, "dead_letter").await;
    assert_eq!(&message["attempts"], &json!(1), "{message}");
    assert_eq!(&message["error"]["field"], &json!("x"), "{message}");
    assert_eq!(message["error"]["expression"], "source | adapter(broken)");
    assert_eq!(stages(&message, "mapped")[0]["name"], "x");
    // Mended, it is delivered.
    let list = app
        .api
        .get("/api/v1/adapters?search=broken")
        .await
        .expect(200);
    let path = format!(
        "/api/v1/adapters/{}",
        list["data"][0]["id"].as_str().unwrap()
    );
    app.api
        .patch(&path, &json!({"code": "const transform = () => 'mended'"}))
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
        .await
        .expect(202);
    app.api.message_becomes(&id, "delivered").await;
    assert_eq!(target.arrivals(1).await[0].json(), json!({"x": "mended"}));
}

#[tokio::test]
async fn names_that_do_not_exist_are_refused_at_deploy() {
    let (app, _target) = service().await;
    adapter(
        &app.api,
        "normalise-order",
        "transform",
        "const transform = (input) => input",
    )
    .await;
    let id = app
        .api
        .flow(&flow(
            "typo",
            "adapter: normalize-order\nmapping:\n  x: source.x | adapter(none)\n",
        ))
        .await;
    let refused = app
        .api
        .post(&format!("/api/v1/flows/{id}/deploy"), &json!({}))
        .await;
    let details = refused.expect_error(400, "INVALID_ARGUMENT");
    let said: Vec<_> = details
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["message"].as_str().unwrap())
        .collect();
    assert!(
        said[0].contains("did you mean \"normalise-order\""),
        "{said:?}"
    );
    assert!(
        said[1].contains("the adapter \"none\" does not exist"),
        "{said:?}"
    );
    let keyed = app
        .api
        .flow(&flow(
            "keyed",
            "ordering_key: source.id | adapter(normalise-order)\n",
        ))
        .await;
    let refused = app
        .api
        .post(&format!("/api/v1/flows/{keyed}/deploy"), &json!({}))
        .await;
    assert!(
        refused.text.contains("a key cannot call adapters"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn a_restarted_node_runs_them_from_the_plans_it_had() {
    let (mut app, target) = service().await;
    adapter(
        &app.api,
        "wrap",
        "transform",
        "const transform = (input) => ({ wrapped: input })",
    )
    .await;
    let (_, url) = app.api.deployed(&flow("kept", "adapter: wrap\n")).await;
    app.kill().await;
    app.restart().await;
    let id = app.api.webhook(&url, &json!(1)).await;
    app.api.message_becomes(&id, "delivered").await;
    assert_eq!(target.arrivals(1).await[0].json(), json!({"wrapped": 1}));
}

#[tokio::test]
async fn json_that_came_as_a_form_is_named_where_an_adapter_fails() {
    let (app, _target) = service().await;
    let code = "function transform(input) { return { plate: input.plate.trim() }; }";
    adapter(&app.api, "plate", "transform", code).await;
    let (_, url) = app.api.deployed(&flow("plates", "adapter: plate\n")).await;
    let form = "application/x-www-form-urlencoded";
    let sent = app.api.request("POST", &url).header("content-type", form);
    let sent = sent.body(r#"{"number":"B-1"}"#);
    let message = text(&Rest::send(sent).await.expect(202)["messageId"]);
    let failed = app.api.message_becomes(&message, "dead_letter").await;
    let error = text(&failed["error"]["message"]);
    assert!(
        error.ends_with("send content-type: application/json"),
        "{error}"
    );
}
