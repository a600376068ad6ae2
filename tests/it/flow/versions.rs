//! `GET /flows/{id}/versions` and one of them.

use kanat_tests::TestApp;
use serde_json::json;

use super::manual;

#[tokio::test]
async fn every_deploy_leaves_a_version_newest_first() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let id = app.api.flow(&manual("versioned")).await;
    let path = format!("/api/v1/flows/{id}");
    for summary in ["first", "second"] {
        let changed = format!("{}when: \"'{summary}'\"\n", manual("versioned"));
        app.api
            .put(&path, &json!({ "yamlConfig": changed }))
            .await
            .expect(200);
        app.api
            .post(
                &format!("{path}/deploy"),
                &json!({ "changeSummary": summary }),
            )
            .await
            .expect(200);
    }
    let list = app.api.get(&format!("{path}/versions")).await.expect(200);
    let found: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (&v["version"], &v["changeSummary"]))
        .collect();
    assert_eq!(
        found,
        [(&json!(2), &json!("second")), (&json!(1), &json!("first"))]
    );
    let one = app.api.get(&format!("{path}/versions/1")).await.expect(200);
    assert_eq!(
        one["yamlConfig"],
        format!("{}when: \"'first'\"\n", manual("versioned"))
    );
    app.api
        .get(&format!("{path}/versions/3"))
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_summary_belongs_to_one_version() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let id = app.api.flow(&manual("summed-up")).await;
    let path = format!("/api/v1/flows/{id}");
    app.api
        .put(&path, &json!({"changeSummary": "first change"}))
        .await
        .expect(200);
    app.api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    let other = manual("summed-up").replace("/in", "/else");
    app.api
        .put(&path, &json!({"yamlConfig": other}))
        .await
        .expect(200);
    app.api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    let list = app.api.get(&format!("{path}/versions")).await.expect(200);
    let found: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["changeSummary"].clone())
        .collect();
    assert_eq!(found, [json!(""), json!("first change")]);
}
