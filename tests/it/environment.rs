//! Environments: three from the first start, kept apart.

use kanat_tests::TestApp;

#[tokio::test]
async fn the_first_start_makes_three() {
    let app = TestApp::start().await;
    let body = app.api.get("/api/v1/environments").await.expect(200);
    let names: Vec<_> = body["data"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["development", "staging", "production"]);
    let unknown = app.api.with_header("x-environment", "nowhere").get("/api/v1/flows").await;
    assert!(unknown.status == 404 || unknown.status == 400, "{}", unknown.text);
}
