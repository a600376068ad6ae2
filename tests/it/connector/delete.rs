//! `DELETE /connectors/instances/{id}`: refused while a deployed flow uses it.

use kanat_tests::TestApp;

#[tokio::test]
async fn an_instance_in_use_stays() {
    let app = TestApp::start().await;
    let id = app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let path = format!("/api/v1/connectors/instances/{id}");
    let (flow, _) = app
        .api
        .deployed(&crate::webhook::passthrough("using"))
        .await;
    app.api
        .delete(&path)
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    app.api.delete(&format!("/api/v1/flows/{flow}")).await;
    assert_eq!(app.api.delete(&path).await.status, 204);
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
}
