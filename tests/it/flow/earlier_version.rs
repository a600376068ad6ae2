//! Resources that messages need which wait under an earlier version of a flow.

use kanat_tests::{TestApp, rest::text};
use serde_json::json;

const DEVELOPMENT: &str = "/api/v1/environments/development";

const FIRST: &str = r"flow: orders
version: 1
source: {trigger: webhook}
mapping:
  country: source.c | lookup(countries)
  name: source.n | adapter(tidy)
  region: env.REGION
target: {connector: erp, endpoint: /in}
";

const SECOND: &str = r"flow: orders
version: 1
source: {trigger: webhook}
target: {connector: crm, endpoint: /in}
";

#[tokio::test]
async fn what_a_waiting_message_of_an_earlier_version_needs_stays_until_it_has_ended() {
    let app = TestApp::start().await;
    let erp = app.api.http_instance("erp", "http://127.0.0.1:9").await;
    app.api.http_instance("crm", "http://127.0.0.1:9").await;
    let table = app
        .api
        .post("/api/v1/lookup-tables", &json!({"name": "countries"}))
        .await
        .expect(201);
    let code = json!({"name": "tidy", "code": "const transform = (input) => input"});
    let adapter = app.api.post("/api/v1/adapters", &code).await.expect(201);
    let variables = json!({"variables": {"REGION": "north"}});
    app.api.patch(DEVELOPMENT, &variables).await.expect(200);
    let (id, url) = app.api.deployed(FIRST).await;
    let flow = format!("/api/v1/flows/{id}");
    app.api
        .post(&format!("{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let message = app.api.webhook(&url, &json!({"c": "de", "n": "x"})).await;
    app.api.message_becomes(&message, "held").await;
    app.api
        .patch(&flow, &json!({"yamlConfig": SECOND}))
        .await
        .expect(200);
    app.api
        .post(&format!("{flow}/deploy"), &json!({"keepPaused": true}))
        .await
        .expect(200);

    let needed = [
        format!("/api/v1/connectors/instances/{erp}"),
        format!("/api/v1/lookup-tables/{}", text(&table["id"])),
        format!("/api/v1/adapters/{}", text(&adapter["id"])),
    ];
    let told = "messages that wait under earlier versions of the flows: orders";
    for path in &needed {
        let refused = app.api.delete(path).await;
        assert!(refused.text.contains(told), "{}", refused.text);
        refused.expect_error(400, "FAILED_PRECONDITION");
    }
    let without = json!({"variables": {}});
    let refused = app.api.patch(DEVELOPMENT, &without).await;
    assert!(refused.text.contains(told), "{}", refused.text);
    refused.expect_error(400, "FAILED_PRECONDITION");

    app.api
        .post(&format!("/api/v1/messages/{message}/discard"), &json!({}))
        .await
        .expect(200);
    for path in &needed {
        assert_eq!(app.api.delete(path).await.status, 204, "{path}");
    }
    app.api.patch(DEVELOPMENT, &without).await.expect(200);
}
