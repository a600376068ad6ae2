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

#[tokio::test]
async fn every_error_has_its_end_and_its_fix() {
    let app = TestApp::start().await;
    let yaml = "\
flow: mended
source: {trigger: webhok}
target:
  connector: erp
  endpoint: /in
  metod: PUT
mapping:
  größe: source.größe | upercase
  gewicht: sorce.größe
";
    let body = app
        .api
        .post("/api/v1/flows/validate", &json!({ "yamlConfig": yaml }))
        .await
        .expect(200);
    let place = |line: u32, from: u32, to: u32, fix: &str| {
        json!({
            "line": line, "column": from, "endLine": line, "endColumn": to,
            "fix": {"text": fix, "line": line, "column": from, "endColumn": to},
        })
    };
    let found: Vec<_> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| {
            let mut place = error.clone();
            for member in ["severity", "message", "path"] {
                place.as_object_mut().unwrap().remove(member).unwrap();
            }
            place
        })
        .collect();
    let expected = [
        place(2, 19, 25, "webhook"),
        place(6, 3, 8, "method"),
        place(8, 25, 33, "uppercase"),
        place(9, 12, 17, "source"),
    ];
    assert_eq!(found, expected, "{body}");
}
