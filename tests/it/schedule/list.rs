//! `GET /schedules`: those of deployed flows, newest first.

use kanat_tests::TestApp;
use serde_json::json;

use super::scheduled;

#[tokio::test]
async fn a_deploy_makes_a_schedule_and_another_trigger_or_a_delete_takes_it_away() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let draft = app
        .api
        .flow(&scheduled("draft", "0 6 * * 1-5", "Europe/Berlin"))
        .await;
    assert_eq!(
        app.api.get("/api/v1/schedules").await.expect(200)["data"],
        json!([])
    );
    app.api
        .post(&format!("/api/v1/flows/{draft}/deploy"), &json!({}))
        .await
        .expect(200);
    let (second, _) = app
        .api
        .deployed(&scheduled("second", "*/5 * * * *", "UTC"))
        .await;
    let (third, _) = app
        .api
        .deployed(&scheduled("third", "0 0 1 1 *", "America/New_York"))
        .await;

    let body = app.api.get("/api/v1/schedules?limit=2").await.expect(200);
    assert_eq!(
        body["pagination"],
        json!({"total": 3, "limit": 2, "offset": 0})
    );
    let names: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["flowName"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["third", "second"]);
    let body = app
        .api
        .get(&format!("/api/v1/schedules?flowId={draft}"))
        .await
        .expect(200);
    let found = &body["data"][0];
    assert!(found["id"].as_str().unwrap().starts_with("sch_"), "{found}");
    let expected = json!({
        "flowId": draft,
        "flowName": "draft",
        "cronExpression": "0 6 * * 1-5",
        "timezone": "Europe/Berlin",
        "enabled": true,
        "nextRuns": [],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name}");
    }
    assert!(
        found["nextRunAt"].as_str().unwrap().ends_with('Z'),
        "{found}"
    );
    assert!(
        found["lastRunAt"].is_null() && found["lastRunStatus"].is_null(),
        "{found}"
    );

    app.api
        .get("/api/v1/schedules?flowId=flw_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .delete(&format!("/api/v1/flows/{second}"))
        .await
        .expect(204);
    let manual = crate::flow::manual("third");
    app.api
        .put(
            &format!("/api/v1/flows/{third}"),
            &json!({ "yamlConfig": manual }),
        )
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/flows/{third}/deploy"), &json!({}))
        .await
        .expect(200);
    assert_eq!(
        app.api.get("/api/v1/schedules").await.expect(200)["pagination"]["total"],
        1
    );
}
