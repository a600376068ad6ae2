//! `GET /schedules/{id}`: with the next ten times.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::{path_of, scheduled};

#[tokio::test]
async fn a_single_read_has_the_next_ten_times_unless_the_flow_is_paused() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (flow, _) = app
        .api
        .deployed(&scheduled("yearly", "30 12 29 2 *", "UTC"))
        .await;
    let path = path_of(&app.api, &flow).await;
    let found = app.api.get(&path).await.expect(200);
    let times: Vec<_> = found["nextRuns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_str().unwrap())
        .collect();
    assert_eq!(times.len(), 10, "{found}");
    assert!(
        times
            .iter()
            .all(|time| time.ends_with("-02-29T12:30:00.000Z")),
        "{times:?}"
    );
    assert_eq!(found["nextRunAt"], times[0]);

    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let paused = app.api.get(&path).await.expect(200);
    assert_eq!(paused["nextRunAt"], Value::Null);
    assert_eq!(&paused["nextRuns"], &json!([]));
    app.api
        .post(&format!("/api/v1/flows/{flow}/resume"), &json!({}))
        .await
        .expect(200);
    assert_eq!(
        app.api.get(&path).await.expect(200)["nextRunAt"],
        found["nextRunAt"]
    );
    app.api
        .get("/api/v1/schedules/sch_none")
        .await
        .expect_error(404, "NOT_FOUND");
}
