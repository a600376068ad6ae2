//! `POST /adapters`.

use kanat_tests::TestApp;
use serde_json::json;

#[tokio::test]
async fn a_new_adapter_has_version_1_and_is_what_was_sent() {
    let app = TestApp::start().await;
    let code = "function transform(input) {\n  return input;\n}";
    let body = json!({"name": "tidy", "description": "d", "type": "source", "code": code});
    let made = app.api.post("/api/v1/adapters", &body).await.expect(201);
    assert!(made["id"].as_str().unwrap().starts_with("adp_"));
    assert_eq!(made["version"], 1);
    assert_eq!(&made["name"], &json!("tidy"));
    assert_eq!(&made["type"], &json!("source"));
    assert_eq!(&made["code"], &json!(code));
    assert!(
        made["createdAt"].as_str().unwrap().ends_with('Z')
            && made["createdAt"] == made["updatedAt"]
    );
    app.api
        .post("/api/v1/adapters", &body)
        .await
        .expect_error(409, "ALREADY_EXISTS");
    let plain = app
        .api
        .post("/api/v1/adapters", &json!({"name": "plain", "code": code}))
        .await
        .expect(201);
    assert_eq!(plain["type"], "transform");
}

#[tokio::test]
async fn code_that_does_not_run_is_refused_with_line_and_column() {
    let app = TestApp::start().await;
    let refused = async |code: &str| {
        let answer = app
            .api
            .post("/api/v1/adapters", &json!({"name": "x", "code": code}))
            .await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], "code", "{code}");
        details[0]["message"].as_str().unwrap().to_owned()
    };
    let said = refused("function transform(input) {\n  return input.;\n}").await;
    assert!(
        said.starts_with("line 2, column ") && said.contains("SyntaxError"),
        "{said}"
    );
    let said = refused("let a = 1;\n\n  missing();\nfunction transform() {}").await;
    assert!(
        said.starts_with("line 3, column 3: ReferenceError"),
        "{said}"
    );
    let said = refused("const other = () => 1").await;
    assert!(said.contains("no function transform"), "{said}");
    assert!(refused("").await.contains("empty"));
    assert!(
        refused("while (true) {}\nfunction transform() {}")
            .await
            .contains("used up its time")
    );
    assert!(
        refused(&format!(
            "function transform() {{}}//{}",
            "x".repeat(1 << 16)
        ))
        .await
        .contains("65536")
    );
    let wrong = json!({"name": "x", "type": "filter", "code": "function transform() {}"});
    assert_eq!(
        app.api
            .post("/api/v1/adapters", &wrong)
            .await
            .expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "type"
    );
    assert_eq!(
        app.api.get("/api/v1/adapters").await.expect(200)["pagination"]["total"],
        0
    );
}
