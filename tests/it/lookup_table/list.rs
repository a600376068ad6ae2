//! `GET /lookup-tables`: newest first, without entries.

use kanat_tests::TestApp;
use serde_json::json;

use super::table;

#[tokio::test]
async fn newest_first_in_pages() {
    let app = TestApp::start().await;
    for name in ["one", "two", "three"] {
        table(&app.api, name, &[("k", "v")]).await;
    }
    let body = app
        .api
        .get("/api/v1/lookup-tables?limit=2")
        .await
        .expect(200);
    let names: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["three", "two"]);
    assert_eq!(body["data"][0]["entries_count"], 1);
    assert_eq!(
        body["pagination"],
        json!({"total": 3, "limit": 2, "offset": 0})
    );
}
