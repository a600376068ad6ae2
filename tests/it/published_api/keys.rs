//! Keys of consumers: made, rotated, suspended and revoked, as the spec's table has it.

use kanat_tests::{TestApp, rest::text};
use serde_json::{Value, json};

use super::{fields, published, quote};

#[tokio::test]
async fn keys_follow_the_table_of_the_spec() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let path = published(&app.api, "quotes", "orders").await;
    let keys = format!("{path}/keys");
    let body = json!({"consumer": "acme", "rateLimitPerSecond": 10, "dailyLimit": 1000});
    let made = app.api.post(&keys, &body).await.expect(201);
    let key = text(&made["key"]);
    assert!(
        key.starts_with("kanat_ck_acme_") && key.len() == "kanat_ck_acme_".len() + 43,
        "{key}"
    );
    assert!(made["id"].as_str().unwrap().starts_with("ck_"));
    assert_eq!(&made["prefix"], &json!("kanat_ck_acme_"));
    assert_eq!(&made["status"], &json!("active"));
    assert_eq!(&made["rateLimitPerSecond"], &json!(10));
    assert_eq!(&made["dailyLimit"], &json!(1000));
    assert!(
        made["requestCount"] == 0 && made.get("lastUsedAt").is_none(),
        "{made}"
    );
    let listed = app.api.get(&keys).await;
    assert!(
        !listed.text.contains(&key) && listed.json()["data"][0].get("key").is_none(),
        "{}",
        listed.text
    );
    let log = app.log();
    assert!(!log.contains(&key), "the key is in the log");

    // Rotated with a grace, both are accepted; the new one has what the old one had.
    let first = format!("{keys}/{}", text(&made["id"]));
    let second = app
        .api
        .post(&format!("{first}/rotate"), &json!({"gracePeriod": "24h"}))
        .await
        .expect(200);
    assert!(
        second["key"] != made["key"] && second["key"].is_string() && second["id"] != made["id"],
        "{second}"
    );
    assert_eq!(&second["consumer"], &json!("acme"));
    assert_eq!(&second["dailyLimit"], &json!(1000));
    assert_eq!(second["rotatedFrom"], made["id"]);
    let old = one(&app, &keys, &made).await;
    assert!(
        old["status"] == "active" && old["expiresAt"].is_string(),
        "{old}"
    );
    app.api
        .post(&format!("{first}/rotate"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    // Without one, the old key ends at once.
    let second_path = format!("{keys}/{}", text(&second["id"]));
    let third = app
        .api
        .post(&format!("{second_path}/rotate"), &json!({}))
        .await
        .expect(200);
    assert_eq!(one(&app, &keys, &second).await["status"], "inactive");
    app.api
        .patch(&second_path, &json!({"status": "active"}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    app.api
        .post(&format!("{second_path}/rotate"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");

    // Suspended and let in again, with other limits.
    let third_path = format!("{keys}/{}", text(&third["id"]));
    assert_eq!(
        app.api
            .patch(&third_path, &json!({"status": "inactive"}))
            .await
            .expect(200)["status"],
        "inactive"
    );
    app.api
        .post(&format!("{third_path}/rotate"), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    let changed = json!({"status": "active", "rateLimitPerSecond": 20});
    let third = app.api.put(&third_path, &changed).await.expect(200);
    assert_eq!(&third["status"], &json!("active"));
    assert_eq!(&third["rateLimitPerSecond"], &json!(20));
    assert_eq!(third["dailyLimit"], 1000);
    let read = format!("\"{}\"", text(&third["etag"]));
    let if_read = app.api.with_header("if-match", &read);
    let more = if_read.put(&third_path, &json!({"dailyLimit": 2000})).await;
    assert_ne!(more.header("etag"), read, "{}", more.text);
    more.expect(200);
    let late = if_read.put(&third_path, &json!({"dailyLimit": 7})).await;
    late.expect_error(409, "ABORTED");
    let back = json!({"dailyLimit": 1000});
    app.api.put(&third_path, &back).await.expect(200);
    // A limit is taken away by null, and only that one.
    let third = app
        .api
        .put(&third_path, &json!({"rateLimitPerSecond": null}))
        .await
        .expect(200);
    assert!(
        third.get("rateLimitPerSecond").is_none() && third["dailyLimit"] == 1000,
        "{third}"
    );
    // What was read may be sent back; what another key's read gave may not.
    let read = one(&app, &keys, &third).await;
    let sent = app.api.put(&third_path, &read).await.expect(200);
    assert_eq!(&sent["dailyLimit"], &json!(1000));
    assert_eq!(&sent["status"], &json!("active"));
    app.api
        .put(&third_path, &one(&app, &keys, &made).await)
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    // Revoked for good; to revoke it again changes nothing.
    for _ in 0..2 {
        assert_eq!(app.api.delete(&third_path).await.status, 204);
    }
    let revoked = one(&app, &keys, &third).await;
    assert!(
        revoked["status"] == "inactive" && revoked["revokedAt"].is_string(),
        "{revoked}"
    );
    app.api
        .patch(&third_path, &json!({"status": "active"}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");

    let other = app
        .api
        .post(&keys, &json!({"consumer": "other_app-2.0"}))
        .await
        .expect(201);
    assert!(
        other.get("rateLimitPerSecond").is_none() && other.get("dailyLimit").is_none(),
        "{other}"
    );
    let spoken = app
        .api
        .post(&keys, &json!({"consumer": "Söhne & Co"}))
        .await
        .expect(201);
    assert_eq!(&spoken["consumer"], &json!("Söhne & Co"));
    assert_eq!(&spoken["prefix"], &json!("kanat_ck_S-hne---Co_"));
    assert!(
        text(&spoken["key"]).starts_with("kanat_ck_S-hne---Co_"),
        "{spoken}"
    );
    let list = app
        .api
        .get(&format!("{keys}?consumer=acme&limit=2"))
        .await
        .expect(200);
    assert_eq!(&list["pagination"]["total"], &json!(3));
    assert_eq!(&list["data"][0]["id"], &third["id"]);
    for (body, field) in [
        (json!({}), "consumer"),
        (json!({"consumer": "a\nb"}), "consumer"),
        (
            json!({"consumer": "a", "rateLimitPerSecond": 0}),
            "rateLimitPerSecond",
        ),
        (json!({"consumer": "a", "dailyLimit": 0}), "dailyLimit"),
        (json!({"consumer": "a", "dailyLimit": -1}), "dailyLimit"),
    ] {
        assert_eq!(
            fields(
                &app.api
                    .post(&keys, &body)
                    .await
                    .expect_error(400, "INVALID_ARGUMENT")
            ),
            [field],
            "{body}"
        );
    }
    let other_path = format!("{keys}/{}", text(&other["id"]));
    for grace in ["a day", "31d", ""] {
        let refused = app
            .api
            .post(
                &format!("{other_path}/rotate"),
                &json!({"gracePeriod": grace}),
            )
            .await;
        assert_eq!(
            fields(&refused.expect_error(400, "INVALID_ARGUMENT")),
            ["gracePeriod"],
            "{grace}"
        );
    }
    let refused = app
        .api
        .patch(&other_path, &json!({"status": "asleep"}))
        .await;
    assert_eq!(
        fields(&refused.expect_error(400, "INVALID_ARGUMENT")),
        ["status"]
    );

    // A key of one API is none of another.
    let elsewhere = published(&app.api, "quotes", "stock").await;
    let id = text(&other["id"]);
    app.api
        .delete(&format!("{elsewhere}/keys/{id}"))
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .post(&format!("{elsewhere}/keys/{id}/rotate"), &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");
}

/// The key as it is listed now.
async fn one(app: &TestApp, keys: &str, key: &Value) -> Value {
    let list = app.api.get(keys).await.expect(200);
    list["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|each| each["id"] == key["id"])
        .unwrap()
        .clone()
}
