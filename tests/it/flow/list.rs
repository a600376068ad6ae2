//! `GET /flows`: newest first, by status and search, in pages.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::manual;

fn names(body: &Value) -> Vec<&str> {
    body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| flow["name"].as_str().unwrap())
        .collect()
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
    assert_eq!(
        all["pagination"],
        json!({"total": 4, "limit": 50, "offset": 0})
    );
    let page = app
        .api
        .get("/api/v1/flows?limit=2&offset=1")
        .await
        .expect(200);
    assert_eq!(names(&page), ["gamma", "beta"]);
    assert_eq!(
        page["pagination"],
        json!({"total": 4, "limit": 2, "offset": 1})
    );
    assert_eq!(
        names(&app.api.get("/api/v1/flows?status=active").await.expect(200)),
        ["delta"]
    );
    assert_eq!(
        names(&app.api.get("/api/v1/flows?search=ALP").await.expect(200)),
        ["alpha"]
    );
    let much = app.api.get("/api/v1/flows?limit=100000").await.expect(200);
    assert_eq!(much["pagination"]["limit"], 500);
    let much = app
        .api
        .get("/api/v1/flows?limit=99999999999999999999")
        .await
        .expect(200);
    assert_eq!(much["pagination"]["limit"], 500);
    let none = app
        .api
        .get("/api/v1/flows?limit=0")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(none[0]["field"], "limit");
    app.api
        .get("/api/v1/flows?limit=many")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    app.api
        .get("/api/v1/flows?colour=red")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn searches_ignore_case_beyond_ascii_and_have_a_bound_in_every_list() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let described = json!({"yamlConfig": manual("fruit"), "description": "Äpfel, 100% [frisch]"});
    app.api.post("/api/v1/flows", &described).await.expect(201);
    let found = async |text: &str| {
        let query = url_query(text);
        names(
            &app.api
                .get(&format!("/api/v1/flows?search={query}"))
                .await
                .expect(200),
        )
        .len()
    };
    for (text, count) in [
        ("äpfel", 1),
        ("ÄPFEL", 1),
        ("100% [f", 1),
        ("100_", 0),
        ("a*", 0),
        ("Apfel", 0),
    ] {
        assert_eq!(found(text).await, count, "{text}");
    }
    for list in [
        "flows",
        "connectors/instances",
        "connectors/catalog",
        "lookup-tables",
        "adapters",
        "published-apis",
    ] {
        app.api
            .get(&format!("/api/v1/{list}?search={}", "x".repeat(500)))
            .await
            .expect(200);
        let refused = app
            .api
            .get(&format!("/api/v1/{list}?search={}", "x".repeat(501)))
            .await;
        assert_eq!(
            refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            "search",
            "{list}"
        );
    }
}

fn url_query(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
