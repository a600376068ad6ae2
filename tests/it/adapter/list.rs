//! `GET /adapters`.

use kanat_tests::TestApp;
use serde_json::Value;

use super::adapter;

#[tokio::test]
async fn newest_first_by_page_by_search_and_by_type() {
    let app = TestApp::start().await;
    for (name, kind) in [
        ("orders", "transform"),
        ("csv", "source"),
        ("order lines", "transform"),
    ] {
        adapter(&app.api, name, kind, "const transform = (input) => input").await;
    }
    let names = async |query: &str| {
        let list = app
            .api
            .get(&format!("/api/v1/adapters{query}"))
            .await
            .expect(200);
        let names: Vec<String> = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a: &Value| a["name"].as_str().unwrap().to_owned())
            .collect();
        (names, list["pagination"]["total"].as_u64().unwrap())
    };
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("").await,
        (owned(&["order lines", "csv", "orders"]), 3)
    );
    assert_eq!(names("?limit=1&offset=1").await, (owned(&["csv"]), 3));
    assert_eq!(
        names("?search=ORDER").await,
        (owned(&["order lines", "orders"]), 2)
    );
    assert_eq!(names("?type=source").await, (owned(&["csv"]), 1));
    app.api
        .get("/api/v1/adapters?type=other")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
}
