//! `PUT` and `PATCH /published-apis/{id}`.

use kanat_tests::TestApp;
use serde_json::json;

use super::{PATH, fields, published, quote};

#[tokio::test]
async fn what_is_left_out_stays_and_null_takes_away() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    app.api.flow(&quote("others")).await;
    let path = published(&app.api, "quotes", "orders").await;
    published(&app.api, "quotes", "stock/{id}").await;
    let before = app.api.get(&path).await;
    let etag = before.header("etag").to_owned();
    let change = json!({
        "path": "orders/{id}",
        "requestSchema": {"type": "object"},
        "responseSchema": true,
        "validationMode": "lenient",
        "cors": {"origins": ["*"]},
        "responseMapping": "{{ source.id }}",
        "flowName": "others",
    });
    let changed = app.api.patch(&path, &change).await.expect(200);
    for field in [
        "path",
        "requestSchema",
        "responseSchema",
        "validationMode",
        "responseMapping",
        "flowName",
    ] {
        assert_eq!(changed[field], change[field], "{field}");
    }
    assert_eq!(&changed["name"], &json!("POST /orders"));
    assert_eq!(&changed["method"], &json!("POST"));
    let taken =
        json!({"requestSchema": null, "responseSchema": null, "responseMapping": null, "cors": {}});
    let changed = app.api.put(&path, &taken).await.expect(200);
    for field in ["requestSchema", "responseSchema", "responseMapping", "cors"] {
        assert!(changed.get(field).is_none(), "{field}: {changed}");
    }
    assert_eq!(changed["path"], "orders/{id}");

    app.api
        .with_header("if-match", &etag)
        .patch(&path, &json!({"name": "late"}))
        .await
        .expect_error(409, "ABORTED");
    let conflict = app.api.patch(&path, &json!({"path": "stock/{n}"})).await;
    assert!(
        conflict.text.contains("POST /stock/{id}"),
        "{}",
        conflict.text
    );
    conflict.expect_error(409, "ALREADY_EXISTS");
    for (change, field) in [
        (json!({"path": "health"}), "path"),
        (
            json!({"oauth2": {"issuer": "https://id.example", "audience": "a"}}),
            "oauth2",
        ),
        (json!({"authType": "oauth2"}), "oauth2"),
        (json!({"flowName": "nobody"}), "flowName"),
        (json!({"responseMapping": {}}), "responseMapping"),
    ] {
        let details = app
            .api
            .patch(&path, &change)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(fields(&details), [field], "{change}");
    }
    let tokens = json!({
        "authType": "oauth2",
        "oauth2": {"issuer": "https://id.example", "audience": "a", "scopes": ["b"]},
    });
    let changed = app.api.patch(&path, &tokens).await.expect(200);
    assert_eq!(changed["oauth2"], tokens["oauth2"]);
    assert!(
        app.api
            .patch(&path, &json!({"authType": "none"}))
            .await
            .expect(200)
            .get("oauth2")
            .is_none()
    );
    assert_eq!(
        app.api.get(PATH).await.expect(200)["pagination"]["total"],
        2
    );
}
