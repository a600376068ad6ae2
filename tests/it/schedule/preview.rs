//! `POST /schedules/preview`: when an expression is due, asked before it is used.

use kanat_tests::TestApp;
use serde_json::json;

#[tokio::test]
async fn times_go_by_the_zone_and_the_changes_of_its_clocks() {
    let app = TestApp::start().await;
    let body = json!({
        "cronExpression": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "after": "2026-03-28T00:00:00Z",
        "count": 3,
    });
    let answer = app
        .api
        .post("/api/v1/schedules/preview", &body)
        .await
        .expect(200);
    let expected = [
        "2026-03-28T01:30:00.000Z",
        "2026-03-29T01:00:00.000Z",
        "2026-03-30T00:30:00.000Z",
    ];
    assert_eq!(answer, json!({ "times": expected }));
    let plain = app
        .api
        .post(
            "/api/v1/schedules/preview",
            &json!({"cronExpression": "0 0 1 1 *"}),
        )
        .await
        .expect(200);
    assert_eq!(plain["times"].as_array().unwrap().len(), 10);
    let many = json!({"cron_expression": "* * * * *", "count": 100_000});
    let many = app
        .api
        .post("/api/v1/schedules/preview", &many)
        .await
        .expect(200);
    assert_eq!(many["times"].as_array().unwrap().len(), 500);
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let app = TestApp::start().await;
    for (body, field) in [
        (json!({}), "cronExpression"),
        (json!({"cronExpression": "0 0 30 2 *"}), "cronExpression"),
        (
            json!({"cronExpression": "0 0 * * *", "timezone": "Mars/Base"}),
            "timezone",
        ),
        (
            json!({"cronExpression": "0 0 * * *", "after": "tomorrow"}),
            "after",
        ),
    ] {
        let refused = app.api.post("/api/v1/schedules/preview", &body).await;
        assert_eq!(
            refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            field,
            "{body}"
        );
    }
}
