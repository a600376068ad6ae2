//! `POST /flows/validate`: every error of a definition, with its place, and nothing kept.

use kanat_tests::TestApp;
use serde_json::json;

use super::manual;

#[tokio::test]
async fn names_line_column_and_path_of_each_error() {
    let app = TestApp::start().await;
    let yaml = r#"flow: checked
version: 1
source:
  trigger: manual
  schedule: "61 * * * *"
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  total: source.amount | decimal(99)
"#;
    let body = app
        .api
        .post("/api/v1/flows/validate", &json!({ "yamlConfig": yaml }))
        .await
        .expect(200);
    assert_eq!(body["valid"], false);
    let errors = body["errors"].as_array().unwrap();
    let total = errors
        .iter()
        .find(|e| e["path"] == "mapping.total")
        .unwrap_or_else(|| panic!("{body}"));
    assert_eq!(total["line"], 11);
    assert!(
        errors
            .iter()
            .any(|e| e["path"] == "source.schedule" && e["line"] == 5),
        "{body}"
    );

    let fine = app
        .api
        .post(
            "/api/v1/flows/validate",
            &json!({ "yamlConfig": manual("fine") }),
        )
        .await
        .expect(200);
    assert_eq!(&fine["valid"], &json!(true));
    assert_eq!(&fine["errors"], &json!([]));
    assert_eq!(
        app.api.get("/api/v1/flows").await.expect(200)["pagination"]["total"],
        0
    );
}

#[tokio::test]
async fn a_definition_with_very_many_errors_has_the_first_hundred() {
    let app = TestApp::start().await;
    let fields: String = (0..15_000)
        .map(|n| format!("  f{n}: sorce.a{n}\n"))
        .collect();
    let yaml = format!(
        r"flow: wrong
version: 1
source: {{trigger: api}}
mapping:
{fields}"
    );
    let body = app
        .api
        .post("/api/v1/flows/validate", &json!({ "yamlConfig": yaml }))
        .await
        .expect(200);
    let errors = body["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 100);
    assert_eq!(errors[99]["path"], "mapping.f99");
}
