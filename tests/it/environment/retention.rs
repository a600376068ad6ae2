//! `retentionDays` of environments, at most those of the service.

use kanat_tests::{Service, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    Service;
    days_are_at_most_those_of_the_service_and_null_takes_them_away,
);

const PATH: &str = "/api/v1/environments";

async fn days_are_at_most_those_of_the_service_and_null_takes_them_away(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let one = format!("{PATH}/development");
    let days = |answer: &Value| answer.get("retentionDays").cloned();
    let before = elsewhere.get(&one).await.expect(200);
    assert_eq!(days(&before), None);
    for (wrong, part) in [(0, "at least 1"), (31, "30 days")] {
        let refused = elsewhere
            .patch(&one, &json!({"retentionDays": wrong}))
            .await;
        assert!(refused.text.contains(part), "{}", refused.text);
        let details = refused.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], "retentionDays");
    }
    let set = api.patch(&one, &json!({"retentionDays": 30})).await;
    assert_eq!(days(&set.expect(200)), Some(json!(30)));
    let set = elsewhere.patch(&one, &json!({"retentionDays": 7})).await;
    assert_eq!(days(&set.expect(200)), Some(json!(7)));
    let other = api.patch(&one, &json!({"protected": true})).await;
    assert_eq!(days(&other.expect(200)), Some(json!(7)));
    let cleared = json!({"retentionDays": null});
    let cleared = elsewhere.patch(&one, &cleared).await.expect(200);
    assert_eq!(days(&cleared), None);

    let body = json!({"name": "canary", "retentionDays": 3});
    let made = api.post(PATH, &body).await.expect(201);
    assert_eq!(days(&made), Some(json!(3)));
}
