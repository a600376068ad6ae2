//! `DELETE /adapters/{id}`: refused while a deployed flow calls it.

use kanat_tests::TestApp;

use super::adapter;

#[tokio::test]
async fn an_adapter_in_use_stays_and_an_unused_one_goes() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let code = "const transform = (input) => input";
    let whole = adapter(&app.api, "whole", "transform", code).await;
    let field = adapter(&app.api, "field", "transform", code).await;
    let yaml = r"flow: user
version: 1
source: {trigger: manual}
adapter: whole
target: {connector: erp, endpoint: /in}
mapping:
  x: source.x | adapter(field)
";
    let (flow, _) = app.api.deployed(yaml).await;
    for path in [&whole, &field] {
        let refused = app.api.delete(path).await;
        assert!(refused.text.contains("user"), "{}", refused.text);
        refused.expect_error(400, "FAILED_PRECONDITION");
    }
    app.api.delete(&format!("/api/v1/flows/{flow}")).await;
    for path in [&whole, &field] {
        assert_eq!(app.api.delete(path).await.status, 204);
        app.api.get(path).await.expect_error(404, "NOT_FOUND");
    }
}
