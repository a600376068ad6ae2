//! `POST /published-apis`: a flow becomes an endpoint, and says what it takes and answers.

use kanat_tests::TestApp;
use serde_json::json;

use super::{PATH, fields, quote};

#[tokio::test]
async fn a_new_api_has_version_v1_and_is_what_was_sent() {
    let app = TestApp::start().await;
    let flow = app.api.flow(&quote("quotes")).await;
    let schema = json!({
        "type": "object",
        "required": ["total"],
        "properties": {"total": {"type": "number"}},
    });
    let body = json!({
        "name": "quotes",
        "description": "Prices.",
        "path": "shop/{shop}/quotes",
        "method": "PUT",
        "authType": "api_key",
        "validationMode": "lenient",
        "flowName": "quotes",
        "requestSchema": schema,
        "responseSchema": {"type": "object"},
        "responseMapping": {"total": "source.total | decimal(2)"},
        "responseStatus": 201,
        "responseHeaders": {"X-Shop": "{{ trigger.path_params.shop }}"},
        "deadline": "5s",
        "onTimeout": "discard",
        "strictResponse": true,
        "cors": {"origins": ["https://shop.example"]},
    });
    let made = app.api.post(PATH, &body).await.expect(201);
    for field in [
        "name",
        "description",
        "path",
        "method",
        "authType",
        "validationMode",
        "flowName",
        "requestSchema",
    ] {
        assert_eq!(made[field], body[field], "{field}");
    }
    for field in [
        "responseSchema",
        "responseMapping",
        "responseStatus",
        "responseHeaders",
        "deadline",
        "onTimeout",
    ] {
        assert_eq!(made[field], body[field], "{field}");
    }
    assert!(made["id"].as_str().unwrap().starts_with("api_"));
    assert_eq!(&made["flowId"], &json!(flow));
    assert_eq!(&made["currentVersion"], &json!("v1"));
    assert_eq!(made["url"], format!("{}/shop/{{shop}}/quotes", app.base));
    assert_eq!(&made["strictResponse"], &json!(true));
    assert_eq!(&made["cors"]["maxAgeSeconds"], &json!(600));
    let version = &made["versions"][0];
    assert_eq!(&version["version"], &json!("v1"));
    assert_eq!(&version["status"], &json!("active"));
    assert_eq!(
        version["url"],
        format!("{}/v1/shop/{{shop}}/quotes", app.base)
    );
    assert!(
        made["createdAt"].as_str().unwrap().ends_with('Z')
            && made["createdAt"] == made["updatedAt"]
    );

    let plain = app
        .api
        .post(PATH, &json!({"flowName": flow, "path": "/plain"}))
        .await
        .expect(201);
    assert_eq!(&plain["path"], &json!("plain"));
    assert_eq!(&plain["method"], &json!("POST"));
    assert_eq!(&plain["name"], &json!("POST /plain"));
    assert_eq!(&plain["authType"], &json!("api_key"));
    assert_eq!(&plain["validationMode"], &json!("strict"));
    assert_eq!(&plain["deadline"], &json!("30s"));
    assert_eq!(&plain["onTimeout"], &json!("continue"));
    assert!(
        plain.get("requestSchema").is_none()
            && plain.get("responseSchema").is_none()
            && plain.get("cors").is_none()
    );
}

#[tokio::test]
async fn an_api_that_no_call_reaches_has_no_url() {
    let app = TestApp::start().await;
    let staging = app.api.with_header("x-environment", "staging");
    staging.deployed(&quote("quotes")).await;
    let made = staging
        .post(PATH, &json!({"flowName": "quotes", "path": "quotes"}))
        .await
        .expect(201);
    assert_eq!(made.get("url"), None);
    assert_eq!(made["versions"][0].get("url"), None);
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let document = staging.get(&format!("{path}/openapi.json")).await;
    assert_eq!(document.expect(200)["servers"], json!([]));
    let base = json!({"baseUrl": "https://staging.example.com"});
    app.api
        .patch("/api/v1/environments/staging", &base)
        .await
        .expect(200);
    let reached = staging.get(&path).await.expect(200);
    assert_eq!(reached["url"], "https://staging.example.com/quotes");
}

#[tokio::test]
async fn what_takes_the_same_requests_is_refused_with_the_name_of_the_other() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let create = |name: &str, method: &str, path: &str| {
        app.api.post_owned(
            PATH,
            &json!({"name": name, "flowName": "quotes", "path": path, "method": method}),
        )
    };
    create("first", "GET", "orders/{id}").await.expect(201);
    let refused = create("second", "GET", "orders/{order}").await;
    assert!(
        refused.text.contains("\\\"first\\\" (GET /orders/{id})"),
        "{}",
        refused.text
    );
    refused.expect_error(409, "ALREADY_EXISTS");
    create("first", "GET", "elsewhere")
        .await
        .expect_error(409, "ALREADY_EXISTS");
    create("other method", "DELETE", "orders/{id}")
        .await
        .expect(201);
    create("other path", "GET", "orders/latest")
        .await
        .expect(201);
    let production = app.api.with_header("x-environment", "production");
    production.flow(&quote("quotes")).await;
    let body =
        json!({"name": "first", "flowName": "quotes", "path": "orders/{id}", "method": "GET"});
    production.post(PATH, &body).await.expect(201);
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    app.api
        .flow(
            r"flow: hook
version: 1
source: {trigger: webhook}
target: {connector: erp, endpoint: /in}
",
        )
        .await;
    for (change, field) in [
        (json!({"path": ""}), "path"),
        (json!({"path": "api/orders"}), "path"),
        (json!({"path": "v1/orders"}), "path"),
        (json!({"path": "webhooks"}), "path"),
        (json!({"path": "a/../b"}), "path"),
        (json!({"path": "a/{id}/{id}"}), "path"),
        (json!({"method": "HEAD"}), "method"),
        (json!({"authType": "basic"}), "authType"),
        (json!({"authType": "oauth2"}), "oauth2"),
        (
            json!({"authType": "oauth2", "oauth2": {"issuer": "nobody", "audience": "a"}}),
            "oauth2.issuer",
        ),
        (json!({"validationMode": "loose"}), "validationMode"),
        (json!({"flowName": ""}), "flowName"),
        (json!({"flowName": "nobody"}), "flowName"),
        (json!({"flowName": "hook"}), "flowName"),
        (json!({"requestSchema": "text"}), "requestSchema"),
        (json!({"responseSchema": [1]}), "responseSchema"),
        (
            json!({"requestSchema": {"$ref": "https://elsewhere.example/schema"}}),
            "requestSchema",
        ),
        (
            json!({"requestSchema": {"properties": {"a": {"pattern": "(a"}}}}),
            "requestSchema",
        ),
        // Schemas are compiled before anything is looked up, so that no other change waits for it.
        (
            json!({"flowName": "nobody", "requestSchema": {"type": "strng"}}),
            "requestSchema",
        ),
        (json!({"responseMapping": "source.a |"}), "responseMapping"),
        (
            json!({"responseMapping": {"a": "source.a | lookup(nowhere)"}}),
            "responseMapping.a",
        ),
        (
            json!({"responseMapping": {"a": "steps.none.output"}}),
            "responseMapping.a",
        ),
        (json!({"responseStatus": 99}), "responseStatus"),
        (
            json!({"responseHeaders": {"Connection": "close"}}),
            "responseHeaders.Connection",
        ),
        (
            json!({"responseHeaders": {"Expect": "100-continue"}}),
            "responseMapping",
        ),
        (json!({"deadline": "1h"}), "deadline"),
        (json!({"onTimeout": "panic"}), "onTimeout"),
        (
            json!({"cors": {"origins": ["*"], "credentials": true}}),
            "cors.credentials",
        ),
        (json!({"colour": "red"}), "colour"),
    ] {
        let mut body = json!({"path": "orders", "flowName": "quotes"});
        body.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let details = app
            .api
            .post(PATH, &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(fields(&details), [field], "{change}");
    }
    let wrong = json!({
        "path": "orders",
        "flowName": "quotes",
        "requestSchema": {"properties": {"a": {"type": "strng"}}},
    });
    let refused = app.api.post(PATH, &wrong).await;
    assert!(
        refused.text.contains("/properties/a/type"),
        "{}",
        refused.text
    );
    assert_eq!(
        app.api.get(PATH).await.expect(200)["pagination"]["total"],
        0
    );
}
