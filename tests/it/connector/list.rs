//! `GET /connectors/instances`.

use kanat_tests::TestApp;

#[tokio::test]
async fn newest_first_and_only_of_this_environment() {
    let app = TestApp::start().await;
    app.api.http_instance("one", "http://127.0.0.1:9").await;
    app.api.http_instance("two", "http://127.0.0.1:9").await;
    app.api
        .with_header("x-environment", "staging")
        .http_instance("three", "http://127.0.0.1:9")
        .await;
    let body = app
        .api
        .get("/api/v1/connectors/instances")
        .await
        .expect(200);
    let names: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["two", "one"]);
}
