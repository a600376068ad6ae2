//! Answers of published APIs that cannot be what they were meant to be.

use kanat_tests::{TestApp, rest::text, until};
use serde_json::{Value, json};

use super::{PATH, fields, published, quote};

/// An answer that looks like an object and is a text.
const TEXT: &str = r#"{"total": "{{ source.total }}"}"#;

fn object() -> Value {
    json!({"type": "object"})
}

#[tokio::test]
async fn a_text_is_refused_under_a_schema_that_accepts_none() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let new = json!({
        "flowName": "quotes", "path": "wrong", "responseSchema": object(), "responseMapping": TEXT,
    });
    let details = app
        .api
        .post(PATH, &new)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(fields(&details), ["responseMapping"]);
    let message = text(&details[0]["message"]);
    assert!(message.contains("give an object"), "{message}");

    let path = published(&app.api, "quotes", "orders").await;
    let schema = json!({"responseSchema": object(), "responseMapping": "source"});
    app.api.patch(&path, &schema).await.expect(200);
    let update = json!({"responseMapping": "'done'"});
    let details = app
        .api
        .patch(&path, &update)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(fields(&details), ["responseMapping"]);

    // The schema is that of the version before.
    let version = json!({"version": "v2", "responseMapping": TEXT});
    let versions = format!("{path}/versions");
    let details = app
        .api
        .post(&versions, &version)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(fields(&details), ["responseMapping"]);
    let own = json!({"version": "v2", "responseMapping": TEXT, "responseSchema": true});
    app.api.post(&versions, &own).await.expect(201);
}

#[tokio::test]
async fn a_text_that_is_not_held_to_its_schema_is_refused_when_it_comes_to_be() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let new = json!({
        "flowName": "quotes", "path": "loose", "responseSchema": object(), "responseMapping": TEXT,
        "strictResponse": false,
    });
    let made = app.api.post(PATH, &new).await.expect(201);
    let path = format!("{PATH}/{}", text(&made["id"]));
    let details = app
        .api
        .patch(&path, &json!({"strictResponse": true}))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(fields(&details), ["responseMapping"]);
    let both = json!({"strictResponse": true, "responseMapping": "source"});
    app.api.patch(&path, &both).await.expect(200);
}

#[tokio::test]
async fn a_status_without_a_value_is_an_error_of_the_answer() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let new = json!({
        "flowName": "quotes", "path": "status", "authType": "none",
        "responseMapping": "source", "responseStatus": "source.statsu",
    });
    app.api.post(PATH, &new).await.expect(201);
    let answer = app
        .api
        .without_key()
        .post("/status", &json!({"total": 1}))
        .await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    // The record of a call that calls nobody is written behind its answer.
    let path = format!("/api/v1/messages/{}", text(&answer.json()["messageId"]));
    let message = until("the call is on record", || async {
        let found = app.api.get(&path).await;
        (found.status == 200).then(|| found.json())
    });
    let trace = message.await["trace"].to_string();
    assert!(trace.contains("a number from 200 to 599"), "{trace}");
}
