//! `GET /flows`: newest first, by status and search, in pages.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::manual;

fn names(body: &Value) -> Vec<&str> {
    body["data"].as_array().unwrap().iter().map(|flow| flow["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_filters_and_searches() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    for name in ["alpha", "beta", "gamma"] {
        app.api.flow(&manual(name)).await;
    }
    app.api.deployed(&manual("delta")).await;
    let all = app.api.get("/api/v1/flows").await.expect(200);
    assert_eq!(names(&all), ["delta", "gamma", "beta", "alpha"]);
    assert_eq!(all["pagination"], json!({"total": 4, "limit": 50, "offset": 0}));
    let page = app.api.get("/api/v1/flows?limit=2&offset=1").await.expect(200);
    assert_eq!(names(&page), ["gamma", "beta"]);
    assert_eq!(page["pagination"], json!({"total": 4, "limit": 2, "offset": 1}));
    assert_eq!(names(&app.api.get("/api/v1/flows?status=active").await.expect(200)), ["delta"]);
    assert_eq!(names(&app.api.get("/api/v1/flows?search=ALP").await.expect(200)), ["alpha"]);
    let much = app.api.get("/api/v1/flows?limit=100000").await.expect(200);
    assert_eq!(much["pagination"]["limit"], 500);
    app.api.get("/api/v1/flows?limit=many").await.expect_error(400, "INVALID_ARGUMENT");
    app.api.get("/api/v1/flows?colour=red").await.expect_error(400, "INVALID_ARGUMENT");
}
