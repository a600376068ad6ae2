//! `GET /flows/{id}/versions/{version}/diff`, and what a flow says of its draft.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::manual;

#[tokio::test]
async fn a_draft_is_compared_with_the_deployed_version() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let first = manual("drafted");
    let second = manual("drafted").replace("/in", "/elsewhere") + "when: source.id\n";
    let id = app.api.flow(&first).await;
    let path = format!("/api/v1/flows/{id}");
    let made = app.api.get(&path).await.expect(200);
    assert_eq!(made["draft"], true);
    assert_eq!(made.get("deployedVersion"), Some(&Value::Null));
    assert_eq!(made.get("lastError"), Some(&Value::Null));
    let listed = app.api.get("/api/v1/flows").await.expect(200);
    assert_eq!(listed["data"][0].get("deployedVersion"), Some(&Value::Null));
    let deployed = app
        .api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&deployed["draft"], &json!(false));
    assert_eq!(&deployed["deployedVersion"], &json!(1));

    let changed = app
        .api
        .put(&path, &json!({"yamlConfig": second}))
        .await
        .expect(200);
    assert_eq!(&changed["draft"], &json!(true));
    assert_eq!(&changed["deployedVersion"], &json!(1));
    let read = app.api.get(&path).await.expect(200);
    assert_eq!(
        read["plan"]["target"]["endpoint"], "/in",
        "the plan is the one that runs: {read}"
    );
    assert_eq!(
        app.api.get("/api/v1/flows").await.expect(200)["data"][0]["draft"],
        true
    );
    let endpoint = async |query: &str| {
        app.api
            .get(&format!("{path}/plan{query}"))
            .await
            .expect(200)
            .to_string()
    };
    assert!(
        endpoint("").await.contains("/in") && endpoint("?draft=true").await.contains("/elsewhere")
    );

    let diff = app
        .api
        .get(&format!("{path}/versions/1/diff?to=draft"))
        .await
        .expect(200);
    let changes = json!([
        {"path": "target.endpoint", "before": "/in", "after": "/elsewhere"},
        {"path": "when", "after": "source.id"},
    ]);
    let found = diff["changes"].as_array().unwrap();
    assert!(
        found.len() == 2
            && changes
                .as_array()
                .unwrap()
                .iter()
                .all(|change| found.contains(change)),
        "{diff}"
    );
    assert_eq!(&diff["from"], &json!("1"));
    assert_eq!(&diff["to"], &json!("draft"));
    app.api
        .get(&format!("{path}/versions/1/diff?to=9"))
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .get(&format!("{path}/versions/one/diff"))
        .await
        .expect_error(400, "INVALID_ARGUMENT");

    let back = app
        .api
        .put(&path, &json!({"yamlConfig": first}))
        .await
        .expect(200);
    assert_eq!(back["draft"], false, "it is saved back to what runs");
}
