//! `GET /lookup-tables/{id}`: the table with its entries, searched and cut.

use kanat_tests::TestApp;
use serde_json::json;

use super::table;

#[tokio::test]
async fn searches_keys_and_values() {
    let app = TestApp::start().await;
    let path = table(
        &app.api,
        "searched",
        &[("DE", "Germany"), ("DK", "Denmark"), ("FR", "France")],
    )
    .await;
    let keys = async |query: &str| {
        let body = app.api.get(&format!("{path}{query}")).await.expect(200);
        body["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys("").await, ["DE", "DK", "FR"]);
    assert_eq!(keys("?search=den").await, ["DK"]);
    assert_eq!(keys("?search=D&limit=1").await, ["DE"]);
    let whole = app.api.get(&format!("{path}?limit=1")).await.expect(200);
    assert_eq!(whole["entries_count"], json!(3));
    app.api
        .with_header("x-environment", "production")
        .get(&path)
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn shows_fifty_entries_unless_asked_for_more() {
    let app = TestApp::start().await;
    let keys: Vec<String> = (0..600).map(|n| format!("k{n:03}")).collect();
    let entries: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
    let path = table(&app.api, "many", &entries).await;
    let count = async |query: &str| {
        let read = app.api.get(&format!("{path}{query}")).await.expect(200);
        read["entries"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 50);
    assert_eq!(count("?limit=60").await, 60);
    assert_eq!(count("?limit=4294967296").await, 500);
}
