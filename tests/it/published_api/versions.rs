//! Versions: made, deprecated and retired, as the spec's table has it.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::{fields, published, quote};

#[tokio::test]
async fn versions_follow_the_table_of_the_spec() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    app.api.flow(&quote("second")).await;
    let path = published(&app.api, "quotes", "orders").await;
    let versions = format!("{path}/versions");
    let first = json!({
        "requestSchema": {"type": "object"},
        "responseSchema": {"type": "object"},
        "responseMapping": "source",
    });
    app.api.patch(&path, &first).await.expect(200);

    // A new version takes over what it does not say; the former one stays active.
    let schema = json!({"type": "object", "required": ["id"]});
    let made = app
        .api
        .post(&versions, &json!({"version": "v2", "schema": schema}))
        .await
        .expect(201);
    assert_eq!(&made["version"], &json!("v2"));
    assert_eq!(&made["status"], &json!("active"));
    assert_eq!(&made["schema"], &schema);
    assert_eq!(&made["responseMapping"], &json!("source"));
    assert_eq!(&made["flowName"], &json!("quotes"));
    assert_eq!(made["url"], format!("{}/v2/orders", app.base));
    let third =
        json!({"version": "v4", "schema": null, "responseMapping": null, "flowName": "second"});
    let made = app.api.post(&versions, &third).await.expect(201);
    assert!(
        made.get("schema").is_none() && made.get("responseMapping").is_none(),
        "{made}"
    );
    assert_eq!(&made["flowName"], &json!("second"));
    assert_eq!(&made["responseSchema"], &json!({"type": "object"}));
    assert_eq!(
        states(&app, &versions).await,
        [("v4", "active"), ("v2", "active"), ("v1", "active")].map(owned)
    );
    assert_eq!(app.api.get(&path).await.expect(200)["currentVersion"], "v4");

    let deprecate = |version: &str, date: &str| {
        app.api.post_owned(
            &format!("{versions}/{version}/deprecate"),
            &json!({"sunsetDate": date}),
        )
    };
    let retire = |version: &str, body: Value| {
        app.api
            .post_owned(&format!("{versions}/{version}/retire"), &body)
    };
    retire("v1", json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    let deprecated = deprecate("v1", "2099-12-31").await.expect(200);
    assert_eq!(&deprecated["status"], &json!("deprecated"));
    assert_eq!(&deprecated["sunsetDate"], &json!("2099-12-31"));
    let early = retire("v1", json!({})).await;
    assert!(early.text.contains("2099-12-31"), "{}", early.text);
    early.expect_error(400, "FAILED_PRECONDITION");
    // Any day will do, also one that is over: then it may be retired.
    assert_eq!(
        deprecate("v1", "2020-02-29").await.expect(200)["sunsetDate"],
        "2020-02-29"
    );
    let retired = retire("v1", json!({})).await.expect(200);
    assert!(
        retired["status"] == "retired" && retired["retiredAt"].is_string(),
        "{retired}"
    );
    retire("v1", json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    deprecate("v1", "2099-01-01")
        .await
        .expect_error(400, "FAILED_PRECONDITION");

    // The current version is the latest active one; without any, the latest that still serves.
    assert_eq!(
        retire("v4", json!({"force": true})).await.expect(200)["status"],
        "retired"
    );
    assert_eq!(app.api.get(&path).await.expect(200)["currentVersion"], "v2");
    deprecate("v2", "2099-12-31").await.expect(200);
    assert_eq!(app.api.get(&path).await.expect(200)["currentVersion"], "v2");
    retire("v2", json!({"force": true})).await.expect(200);
    assert_eq!(
        states(&app, &versions).await,
        [("v4", "retired"), ("v2", "retired"), ("v1", "retired")].map(owned)
    );

    app.api
        .post(&versions, &json!({"version": "v2"}))
        .await
        .expect_error(409, "ALREADY_EXISTS");
    for (body, field) in [
        (json!({"version": "2"}), "version"),
        (json!({"version": "v0"}), "version"),
        (json!({"version": "v02"}), "version"),
        (json!({}), "version"),
        (json!({"version": "v5", "schema": 1}), "schema"),
        (json!({"version": "v5", "flowName": "nobody"}), "flowName"),
        (
            json!({"version": "v5", "responseMapping": "source |"}),
            "responseMapping",
        ),
    ] {
        let details = app
            .api
            .post(&versions, &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(fields(&details), [field], "{body}");
    }
    app.api
        .post(&versions, &json!({"version": "v5"}))
        .await
        .expect(201);
    for date in ["", "2099-02-30", "31.12.2099", "2099-12-31T00:00:00Z"] {
        let details = deprecate("v5", date)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(fields(&details), ["sunsetDate"], "{date}");
    }
    deprecate("v9", "2099-12-31")
        .await
        .expect_error(404, "NOT_FOUND");
    retire("v9", json!({})).await.expect_error(404, "NOT_FOUND");
    let list = app
        .api
        .get(&format!("{versions}?limit=1&offset=1"))
        .await
        .expect(200);
    assert_eq!(&list["data"][0]["version"], &json!("v4"));
    assert_eq!(&list["pagination"]["total"], &json!(4));
}

fn owned((version, status): (&str, &str)) -> (String, String) {
    (version.to_owned(), status.to_owned())
}

async fn states(app: &TestApp, versions: &str) -> Vec<(String, String)> {
    let list = app.api.get(versions).await.expect(200);
    let word = |version: &Value, field: &str| version[field].as_str().unwrap().to_owned();
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| (word(each, "version"), word(each, "status")))
        .collect()
}
