//! `GET /adapters/{id}`.

use kanat_tests::TestApp;

use super::adapter;

#[tokio::test]
async fn gives_what_was_made() {
    let app = TestApp::start().await;
    let path = adapter(
        &app.api,
        "tidy",
        "target",
        "const transform = (input) => input",
    )
    .await;
    let found = app.api.get(&path).await.expect(200);
    assert_eq!(found["name"].as_str(), Some("tidy"));
    assert_eq!(found["type"].as_str(), Some("target"));
    assert_eq!(found["code"], "const transform = (input) => input");
    app.api
        .get("/api/v1/adapters/adp_none")
        .await
        .expect_error(404, "NOT_FOUND");
}
