//! `GET /flow-language`: keys, transforms, functions, operators and roots, and the JSON Schema.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use kanat_tests::rest::text;
use serde_json::{Value, json};

#[tokio::test]
async fn every_example_gives_its_value_and_the_schema_is_that_of_the_command() {
    let app = TestApp::start().await;
    let answer = app.api.get("/api/v1/flow-language").await;
    assert!(!answer.header("etag").is_empty());
    let language = answer.expect(200);
    let mut evaluated = 0;
    for list in ["transforms", "functions"] {
        for function in language[list].as_array().unwrap() {
            let example = &function["example"];
            let Some(value) = example.get("value") else {
                continue;
            };
            let mut body = json!({"expression": example["expression"]});
            if let Some(source) = example.get("source") {
                body["source"] = source.clone();
            }
            let found = app.api.post("/api/v1/expressions/evaluate", &body).await;
            assert_eq!(&found.expect(200)["value"], value, "{function}");
            evaluated += 1;
        }
    }
    assert!(evaluated > 25, "{evaluated}");
    let named = |list: &str, name: &str, value: &str| -> Value {
        let entries = language[list].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry[name] == value);
        entry.unwrap_or_else(|| panic!("{value} in {list}")).clone()
    };
    let strategy = named("keys", "path", "source.poll.pagination.strategy");
    assert_eq!(strategy["required"], true);
    assert!(
        strategy["values"]
            .as_array()
            .unwrap()
            .contains(&json!("page"))
    );
    assert_eq!(named("keys", "path", "target.timeout")["default"], "30s");
    let decimal = named("transforms", "name", "decimal");
    assert_eq!(decimal["arguments"][0]["required"], true);
    assert!(text(&named("roots", "name", "response")["where"]).contains("success_when"));
    assert!(!text(&named("operators", "name", "in")["text"]).is_empty());

    let printed = Cli::new().run(&["flow", "schema"]).await.json();
    assert_eq!(printed, language["schema"]);
    assert_eq!(
        printed["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
}
