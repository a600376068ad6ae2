//! `PUT` and `PATCH /schedules/{id}`: partial, and kept by deploys that say nothing new.

use kanat_tests::TestApp;
use serde_json::{Value, json};

use super::{path_of, scheduled};

#[tokio::test]
async fn a_field_left_out_stays_and_a_wrong_one_changes_nothing() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (flow, _) = app
        .api
        .deployed(&scheduled("nightly", "0 3 * * *", "UTC"))
        .await;
    let path = path_of(&app.api, &flow).await;
    let before = app.api.get(&path).await.expect(200);

    for (body, field) in [
        (json!({"cron_expression": "61 * * * *"}), "cron_expression"),
        (json!({"cronExpression": "@daily"}), "cron_expression"),
        (
            json!({"timezone": "Europe/Berln", "enabled": false}),
            "timezone",
        ),
    ] {
        let refused = app.api.put(&path, &body).await;
        assert_eq!(
            refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            field,
            "{body}"
        );
    }
    let both = app
        .api
        .put(
            &path,
            &json!({"cron_expression": "* * *", "timezone": "Mars/Base"}),
        )
        .await;
    let details = both.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(&details[0]["field"], &json!("cron_expression"));
    assert_eq!(&details[1]["field"], &json!("timezone"));
    assert_eq!(app.api.get(&path).await.expect(200), before);

    let put = app
        .api
        .put(
            &path,
            &json!({"cron_expression": "15 4 29 2 *", "timezone": "Asia/Tokyo"}),
        )
        .await
        .expect(200);
    assert_eq!(&put["cronExpression"], &json!("15 4 29 2 *"));
    assert_eq!(&put["timezone"], &json!("Asia/Tokyo"));
    assert!(
        put["nextRunAt"]
            .as_str()
            .unwrap()
            .ends_with("-02-28T19:15:00.000Z"),
        "{put}"
    );
    let patch = app
        .api
        .patch(&path, &json!({"enabled": false}))
        .await
        .expect(200);
    assert_eq!(&patch["cronExpression"], &json!("15 4 29 2 *"));
    assert_eq!(&patch["enabled"], &json!(false));
    assert_eq!(patch["nextRunAt"], Value::Null);
    assert_eq!(&patch["nextRuns"], &json!([]));
    let patch = app
        .api
        .patch(&path, &json!({"enabled": true}))
        .await
        .expect(200);
    assert_eq!(patch["nextRunAt"], put["nextRunAt"]);
}

#[tokio::test]
async fn an_update_survives_a_deploy_that_says_no_other_time() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (flow, _) = app
        .api
        .deployed(&scheduled("nightly", "0 3 * * *", "UTC"))
        .await;
    let path = path_of(&app.api, &flow).await;
    let changed =
        json!({"cron_expression": "0 4 * * *", "timezone": "Asia/Tokyo", "enabled": false});
    app.api.put(&path, &changed).await.expect(200);

    let deploy = async |yaml: &str| {
        app.api
            .put(
                &format!("/api/v1/flows/{flow}"),
                &json!({ "yamlConfig": yaml }),
            )
            .await
            .expect(200);
        app.api
            .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
            .await
            .expect(200);
        let found = app.api.get(&path).await.expect(200);
        let text = |name: &str| found[name].as_str().unwrap().to_owned();
        (
            text("cronExpression"),
            text("timezone"),
            found["enabled"].as_bool().unwrap(),
        )
    };
    let same = format!(
        "description: other words\n{}",
        scheduled("nightly", "0 3 * * *", "UTC")
    );
    assert_eq!(
        deploy(&same).await,
        ("0 4 * * *".to_owned(), "Asia/Tokyo".to_owned(), false)
    );
    let moved = scheduled("nightly", "0 3 * * *", "Europe/Berlin");
    assert_eq!(
        deploy(&moved).await,
        ("0 4 * * *".to_owned(), "Europe/Berlin".to_owned(), false)
    );
    let other = scheduled("nightly", "30 5 * * *", "Europe/Berlin");
    assert_eq!(
        deploy(&other).await,
        ("30 5 * * *".to_owned(), "Europe/Berlin".to_owned(), false)
    );
}

#[tokio::test]
async fn a_lost_update_is_refused() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (flow, _) = app
        .api
        .deployed(&scheduled("nightly", "0 3 * * *", "UTC"))
        .await;
    let path = path_of(&app.api, &flow).await;
    let read = app.api.get(&path).await;
    let api = app.api.with_header("if-match", read.header("etag"));
    api.put(&path, &json!({"enabled": false})).await.expect(200);
    api.put(&path, &json!({"enabled": true}))
        .await
        .expect_error(409, "ABORTED");
}
