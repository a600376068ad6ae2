//! `POST /lookup-tables`.

use kanat_tests::TestApp;
use serde_json::json;

#[tokio::test]
async fn a_new_table_has_version_1_and_the_specs_spelling() {
    let app = TestApp::start().await;
    let body = json!({"name": "country_codes", "description": "ISO"});
    let made = app
        .api
        .post("/api/v1/lookup-tables", &body)
        .await
        .expect(201);
    assert!(made["id"].as_str().unwrap().starts_with("lt_"));
    assert_eq!(&made["version"], &json!(1));
    assert_eq!(&made["entries_count"], &json!(0));
    assert!(made["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(made.get("createdAt"), None);
    app.api
        .post("/api/v1/lookup-tables", &body)
        .await
        .expect_error(409, "ALREADY_EXISTS");
    let nameless = app
        .api
        .post("/api/v1/lookup-tables", &json!({"name": ""}))
        .await;
    assert_eq!(
        nameless.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "name"
    );
}
