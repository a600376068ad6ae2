//! `GET /published-apis/{id}/openapi.json`.

use kanat_tests::TestApp;
use serde_json::json;

use super::{published, quote};

#[tokio::test]
async fn consumers_read_every_version_that_serves() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let path = published(&app.api, "quotes", "orders/{id}").await;
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    let second = json!({"version": "v2", "schema": schema, "responseSchema": {"type": "object"}});
    app.api
        .post(&format!("{path}/versions"), &second)
        .await
        .expect(201);
    app.api
        .post(
            &format!("{path}/versions/v1/deprecate"),
            &json!({"sunsetDate": "2099-01-01"}),
        )
        .await
        .expect(200);
    let document = app
        .api
        .get(&format!("{path}/openapi.json"))
        .await
        .expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"], json!([{"url": app.base}]));
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        ["/v2/orders/{id}", "/v1/orders/{id}", "/orders/{id}"]
    );
    assert_eq!(
        document["paths"]["/v1/orders/{id}"]["post"]["deprecated"],
        true
    );
    assert_eq!(document["components"]["schemas"]["v2.Request"], schema);
    let operation = &document["paths"]["/orders/{id}"]["post"];
    assert_eq!(
        operation["parameters"][0]["schema"],
        json!({"type": "string"}),
        "the schema is of the body"
    );
    for status in ["200", "401", "422", "429", "504"] {
        assert!(operation["responses"][status].is_object(), "{status}");
    }
}
