//! `DELETE /lookup-tables/{id}`: refused while a deployed flow reads it.

use kanat_tests::TestApp;
use serde_json::json;

use super::table;

#[tokio::test]
async fn a_table_in_use_stays_and_an_unused_one_goes() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let path = table(&app.api, "used", &[("a", "b")]).await;
    let yaml = r"flow: user
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  x: source.x | lookup(used)
";
    let (flow, _) = app.api.deployed(yaml).await;
    app.api
        .delete(&path)
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    app.api.delete(&format!("/api/v1/flows/{flow}")).await;
    assert_eq!(app.api.delete(&path).await.status, 204);
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
    app.api
        .post("/api/v1/lookup-tables", &json!({"name": "used"}))
        .await
        .expect(201);
}
