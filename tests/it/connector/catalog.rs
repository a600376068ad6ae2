//! `GET /connectors/catalog` and below.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use serde_json::json;

#[tokio::test]
async fn lists_entries_actions_and_schemas() {
    let app = TestApp::start().await;
    let body = app.api.get("/api/v1/connectors/catalog").await.expect(200);
    let ids: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["id"].as_str().unwrap())
        .collect();
    for id in ["http", "support-ticketing", "email-delivery"] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    let entry = app
        .api
        .get("/api/v1/connectors/catalog/email-delivery")
        .await
        .expect(200);
    assert_eq!(entry["category"].as_str(), Some("Communication"));
    assert_eq!(entry["authentication"].as_str(), Some("bearer"));
    let found = app
        .api
        .get("/api/v1/connectors/catalog?category=Communication")
        .await
        .expect(200);
    let found: Vec<_> = found["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        found,
        ["email-delivery", "microsoft-teams", "slack", "twilio"]
    );
    let found = app
        .api
        .get("/api/v1/connectors/catalog?search=HTTP")
        .await
        .expect(200);
    assert!(
        found["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["id"] == "http"),
        "{found}"
    );
    let crm = app
        .api
        .get("/api/v1/connectors/catalog?category=crm")
        .await
        .expect(200);
    assert!(
        crm["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["id"] == "hubspot"),
        "{crm}"
    );
    let shown = Cli::of(&app)
        .run(&["connector", "catalog", "http"])
        .await
        .expect();
    for told in [
        "auth (none | api_key | basic | bearer, default none)",
        "get (GET /{+path})",
        "params: path*, query",
    ] {
        assert!(shown.contains(told), "{shown}");
    }
    let fields = entry["configSchema"]["properties"].as_object().unwrap();
    assert_eq!(&fields["api_key"]["writeOnly"], &json!(true));
    assert_eq!(&entry["configSchema"]["required"], &json!(["api_key"]));
    let actions = app
        .api
        .get("/api/v1/connectors/catalog/email-delivery/actions")
        .await
        .expect(200);
    assert!(
        actions["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|a| a["slug"] == "add-contacts"),
        "{actions}"
    );
    let action = app
        .api
        .get("/api/v1/connectors/catalog/email-delivery/actions/send-email")
        .await
        .expect(200);
    assert!(
        action["requestSchema"].is_object() && action["responseSchema"].is_object(),
        "{action}"
    );
    app.api
        .get("/api/v1/connectors/catalog/nothing")
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .get("/api/v1/connectors/catalog/http/actions/nothing")
        .await
        .expect_error(404, "NOT_FOUND");
}
