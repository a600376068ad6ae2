//! Deploys of flows whose values the responses of published APIs read.

use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::json;

use super::{PATH, fields, quote};

/// A flow that asks for a customer before it answers.
fn with_step(name: &str) -> String {
    format!(
        r"{}steps:
  - {{name: customer, action: http.get, connector: erp, params: {{path: customers}}}}
",
        quote(name)
    )
}

/// Refuses to deploy; gives the message.
async fn refused(api: &Rest, path: &str, body: &serde_json::Value) -> String {
    let answer = api.post(path, body).await;
    let message = answer.text.clone();
    answer.expect_error(400, "FAILED_PRECONDITION");
    message
}

#[tokio::test]
async fn a_deploy_that_takes_a_value_from_a_response_is_refused() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (id, _) = app.api.deployed(&quote("quotes")).await;
    let flow = format!("/api/v1/flows/{id}");
    let deploy = format!("{flow}/deploy");
    let stepped = json!({"yamlConfig": with_step("quotes")});
    app.api.patch(&flow, &stepped).await.expect(200);
    app.api.post(&deploy, &json!({})).await.expect(200);
    let new = json!({
        "flowName": "quotes", "path": "quotes",
        "responseMapping": {"name": "steps.customer.output.name"},
    });
    let made = app.api.post(PATH, &new).await.expect(201);

    let told = [
        "POST /quotes",
        "version v1",
        "responseMapping.name",
        "no step has run before",
    ];
    let assert_told = |message: &str| {
        for part in told {
            assert!(message.contains(part), "{part}: {message}");
        }
    };
    // The check that tools make before a deploy, the draft and the deploy say the same.
    let bare = json!({"yamlConfig": quote("quotes")});
    let checked = app.api.post("/api/v1/flows/validate", &bare).await;
    assert_told(&checked.expect(200)["warnings"].to_string());
    let draft = app.api.patch(&flow, &bare).await.expect(200);
    assert_told(&draft["warnings"].to_string());
    assert_told(&refused(&app.api, &deploy, &json!({})).await);
    let rollback = json!({"versionNumber": 1, "discardDraft": true});
    assert_told(&refused(&app.api, &format!("{flow}/rollback"), &rollback).await);

    let api = format!("{PATH}/{}", text(&made["id"]));
    let other = json!({"responseMapping": "source"});
    app.api.patch(&api, &other).await.expect(200);
    let deployed = app.api.post(&deploy, &json!({})).await.expect(200);
    assert_eq!(deployed["version"], 3);
}

#[tokio::test]
async fn a_response_reads_the_target_only_of_a_flow_that_has_one() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let new = json!({
        "flowName": "quotes", "path": "quotes",
        "responseMapping": {"number": "target.response.body.number"},
    });
    let details = app.api.post(PATH, &new).await;
    let details = details.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(fields(&details), ["responseMapping.number"]);
    let message = text(&details[0]["message"]);
    assert!(message.contains("the flow has no target"), "{message}");

    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let target = format!(
        "{}target: {{connector: erp, endpoint: /in}}\n",
        quote("orders")
    );
    app.api.flow(&target).await;
    let new = json!({
        "flowName": "orders", "path": "orders", "responseMapping": new["responseMapping"],
    });
    app.api.post(PATH, &new).await.expect(201);
}
