//! `GET /governance/policies`: newest first, searched by name and description.

use kanat_tests::TestApp;
use serde_json::Value;

use super::{PATH, policy};

fn names(list: &Value) -> Vec<&str> {
    let policies = list["data"].as_array().unwrap();
    policies
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn policies_are_listed_newest_first_in_pages() {
    let app = TestApp::start().await;
    for name in ["retries", "no-plain-http", "Retry limits"] {
        policy(&app.api, name).await;
    }
    let all = app.api.get(PATH).await.expect(200);
    assert_eq!(names(&all), ["Retry limits", "no-plain-http", "retries"]);
    let page = app
        .api
        .get(&format!("{PATH}?limit=1&offset=1"))
        .await
        .expect(200);
    assert_eq!(names(&page), ["no-plain-http"]);
    assert_eq!(page["pagination"]["total"], 3);
    let found = app
        .api
        .get(&format!("{PATH}?search=RETR"))
        .await
        .expect(200);
    assert_eq!(names(&found), ["Retry limits", "retries"]);
}
