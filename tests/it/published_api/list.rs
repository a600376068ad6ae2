//! `GET /published-apis`.

use kanat_tests::TestApp;
use serde_json::Value;

use super::{PATH, published, quote};

#[tokio::test]
async fn newest_first_by_page_and_by_search() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    for path in ["orders", "orders/{id}", "stock"] {
        published(&app.api, "quotes", path).await;
    }
    let paths = async |query: &str| {
        let list = app.api.get(&format!("{PATH}{query}")).await.expect(200);
        let data: &Vec<Value> = list["data"].as_array().unwrap();
        let paths: Vec<String> = data
            .iter()
            .map(|api| api["path"].as_str().unwrap().to_owned())
            .collect();
        (
            paths.join(" "),
            list["pagination"]["total"].as_u64().unwrap(),
        )
    };
    assert_eq!(paths("").await, ("stock orders/{id} orders".to_owned(), 3));
    assert_eq!(
        paths("?limit=1&offset=1").await,
        ("orders/{id}".to_owned(), 3)
    );
    assert_eq!(
        paths("?search=ORDER").await,
        ("orders/{id} orders".to_owned(), 2)
    );
}
