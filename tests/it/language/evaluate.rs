//! `POST /expressions/evaluate`: an expression or a template on documents that the caller gives.

use kanat_tests::TestApp;
use kanat_tests::rest::text;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/expressions/evaluate";

#[tokio::test]
async fn gives_the_value_with_its_digits_and_its_type() {
    let app = TestApp::start().await;
    for (body, answer) in [
        (
            r#"{"expression": "source.n", "source": {"n": 1.10}}"#,
            r#"{"value":1.10,"type":"number"}"#,
        ),
        (
            r#"{"expression": "source.missing", "source": {}}"#,
            r#"{"type":"undefined"}"#,
        ),
        (
            r#"{"expression": "null"}"#,
            r#"{"value":null,"type":"null"}"#,
        ),
        (
            r#"{"expression": "source", "source": null}"#,
            r#"{"value":null,"type":"null"}"#,
        ),
        (
            r#"{"expression": "not source"}"#,
            r#"{"value":true,"type":"boolean"}"#,
        ),
        (
            r#"{"template": "no {{ source.n | decimal(2) }}", "source": {"n": 1}}"#,
            r#"{"value":"no 1.00","type":"string"}"#,
        ),
        (
            r#"{"expression": "item.b", "item": {"b": [9007199254740993]}}"#,
            r#"{"value":[9007199254740993],"type":"list"}"#,
        ),
        (
            r#"{"expression": "response.headers.X-A", "response": {"headers": {"x-a": "1"}}}"#,
            r#"{"value":"1","type":"string"}"#,
        ),
        (
            r#"{"expression": "steps.a.output", "steps": {"a": {"output": {"b": 1}}}}"#,
            r#"{"value":{"b":1},"type":"object"}"#,
        ),
        (
            r#"{"expression": "state.cursor", "state": {"cursor": "c"}}"#,
            r#"{"value":"c","type":"string"}"#,
        ),
        (
            r#"{"expression": "[index, env.A]", "index": 3, "env": {"A": "x"}}"#,
            r#"{"value":[3,"x"],"type":"list"}"#,
        ),
        (
            r#"{"expression": "trigger.query.q", "trigger": {"query": {"q": "1"}}}"#,
            r#"{"value":"1","type":"string"}"#,
        ),
    ] {
        let found = app.api.raw("POST", PATH, "application/json", body).await;
        assert_eq!(found.text, answer, "{body}");
        found.expect(200);
    }
}

#[tokio::test]
async fn shows_where_an_expression_is_wrong_and_where_it_fails() {
    let app = TestApp::start().await;
    let evaluate = |body: Value| app.api.post_owned(PATH, &body);
    let wrong = evaluate(json!({"expression": "source.größe\n | upercase"}))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    let [detail] = &wrong.as_array().unwrap()[..] else {
        panic!("one fault in {wrong}")
    };
    assert_eq!(detail["field"], "expression");
    assert_eq!(detail["line"], 2);
    assert_eq!(detail["column"], 4);
    assert_eq!(detail["endColumn"], 12);
    assert!(
        text(&detail["message"]).contains("did you mean `uppercase`"),
        "{wrong}"
    );
    assert_eq!(detail.get("transform"), None);

    let failed = evaluate(json!({
        "expression": "source.n | decimal(2)", "source": {"n": "x"},
    }))
    .await
    .expect_error(400, "INVALID_ARGUMENT");
    let detail = &failed[0];
    assert_eq!(detail["field"], "expression");
    assert_eq!(detail["line"], 1);
    assert_eq!(detail["column"], 12);
    assert_eq!(detail["endColumn"], 19);
    assert_eq!(detail["transform"], "decimal");
    assert_eq!(detail["value"], "x");

    for (body, field) in [
        (json!({}), "expression"),
        (json!({"expression": "1", "template": "1"}), "template"),
        (json!({"template": "a {{ source. }}"}), "template"),
        (json!({"expression": "instance.token"}), "expression"),
    ] {
        let refused = evaluate(body.clone())
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(refused[0]["field"], field, "{body}: {refused}");
    }
    // As in a definition.
    for (body, column, told) in [
        (
            json!({"expression": "'2026-01-31' | date(yyyy-MM-dd)"}),
            21,
            "did you mean `YYYY-MM-DD`",
        ),
        (
            json!({"template": "W {{ source.at | date('yyyy') }}", "source": {"at": "2026-01-31"}}),
            23,
            "found `yyyy`",
        ),
        (
            json!({"expression": "trigger.headrs.x", "trigger": {}}),
            9,
            "found `headrs`",
        ),
    ] {
        let refused = evaluate(body.clone())
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(refused[0]["column"], column, "{body}: {refused}");
        let message = text(&refused[0]["message"]);
        assert!(message.contains(told), "{body}: {message}");
    }
    let long = json!({"expression": "source", "source": "x".repeat(1 << 20)});
    assert!(evaluate(long).await.status >= 400);
}

/// Rows of the unit tests: an expression, and what it gives for the payload.
const EXAMPLES: &str = include_str!("../../../crates/mapping/tests/language/examples/table.txt");
const PAYLOAD: &str = include_str!("../../../crates/mapping/tests/language/examples/payload.json");

#[tokio::test]
async fn every_example_of_the_language_gives_its_value() {
    let app = TestApp::start().await;
    table(&app, &json!([{"key": "17", "value": "by its text"}])).await;
    let rows = EXAMPLES
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with('#'))
        // Its value is another one each time.
        .filter(|row| !row.contains("now()"));
    let mut wrong = Vec::new();
    for row in rows {
        let (expression, expected) = row.split_once(" => ").unwrap();
        let body = format!(
            r#"{{"expression": {}, "source": {PAYLOAD}, "env": {{"REGION": "eu-1"}},
                "response": {{"status": 200, "body": {{"ok": true}}}}}}"#,
            json!(expression.trim()),
        );
        let found = app.api.raw("POST", PATH, "application/json", body).await;
        let shown = match found.status {
            200 => match found.text.strip_prefix("{\"value\":") {
                Some(rest) => rest.rsplit_once(",\"type\":").unwrap().0.to_owned(),
                None => "undefined".to_owned(),
            },
            _ => {
                let refused: Value = serde_json::from_str(&found.text).unwrap();
                format!("error: {}", text(&refused["details"][0]["message"]))
            }
        };
        if shown != expected.trim() {
            wrong.push(format!("{row}\n  gives {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Creates the lookup table `countries` with these entries.
async fn table(app: &TestApp, entries: &Value) {
    let table = json!({"name": "countries"});
    let created = app.api.post("/api/v1/lookup-tables", &table).await;
    let id = text(&created.expect(201)["id"]).to_owned();
    let path = format!("/api/v1/lookup-tables/{id}/entries");
    let put = app.api.put(&path, &json!({ "entries": entries })).await;
    put.expect(200);
}

#[tokio::test]
async fn tables_and_adapters_are_those_of_the_environment() {
    let app = TestApp::start().await;
    table(&app, &json!([{"key": "DE", "value": "276"}])).await;
    let adapter = json!({
        "name": "double", "code": "function transform(input) { return input * 2 }",
    });
    app.api.post("/api/v1/adapters", &adapter).await.expect(201);
    for (expression, value) in [
        ("source.c | lookup(countries)", json!("276")),
        ("source.n | adapter(double)", json!(42)),
    ] {
        let body = json!({"expression": expression, "source": {"c": "DE", "n": 21}});
        let found = app.api.post(PATH, &body).await.expect(200);
        assert_eq!(found["value"], value, "{expression}");
    }
    let production = app.api.with_header("x-environment", "production");
    let body = json!({"expression": "'DE' | lookup(countries)"});
    let elsewhere = production.post(PATH, &body).await;
    let refused = elsewhere.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(refused[0]["transform"], "lookup");
}
