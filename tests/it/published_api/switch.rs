//! Versions that come, are deprecated and are retired while they are called: what every answer says
//! of it, and that the switch is an error to nobody.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kanat_tests::{Answer, Rest, TestApp, rest::text, until};
use serde_json::json;

use super::{PATH, quote};

/// Callers at each address, during the whole test.
const CALLERS: usize = 3;

const LAST_VERSION: u32 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_of_versions_under_load_is_an_error_to_nobody() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let body = json!({
        "flowName": "quotes",
        "path": "switch",
        "responseSchema": true,
        "responseMapping": "trigger.api",
    });
    let api = format!(
        "{PATH}/{}",
        text(&app.api.post(PATH, &body).await.expect(201)["id"])
    );
    let key = app
        .api
        .post(&format!("{api}/keys"), &json!({"consumer": "acme"}))
        .await
        .expect(201);
    let consumer = app.api.with_key(&text(&key["key"]));

    let done = tokio::sync::watch::Sender::new(false);
    let seen = AtomicU32::new(0);
    let calling = async |path: &str, expected: fn(&Answer) -> u32| {
        let mut versions = BTreeSet::new();
        while !*done.borrow() {
            let answer = consumer.post(path, &json!({})).await;
            let version = expected(&answer);
            // Who asks for no version never goes back to an older one.
            assert!(
                path != "/switch" || versions.last().is_none_or(|last| *last <= version),
                "{version} of {versions:?}"
            );
            versions.insert(version);
            seen.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        versions
    };
    let served = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{}", answer.text);
        text(&answer.json()["version"])[1..].parse().unwrap()
    };
    let switching = async {
        for number in 2..=LAST_VERSION {
            let version = format!("v{number}");
            app.api
                .post(&format!("{api}/versions"), &json!({"version": version}))
                .await
                .expect(201);
            let former = format!("{api}/versions/v{}", number - 1);
            let retire = format!("{former}/retire");
            let sunset = json!({"sunsetDate": "2030-01-01"});
            app.api
                .post(&format!("{former}/deprecate"), &sunset)
                .await
                .expect(200);
            // `v1` is called by its name all the while.
            if number > 2 {
                app.api
                    .post(&retire, &json!({"force": true}))
                    .await
                    .expect(200);
            }
            let before = seen.load(Ordering::Relaxed);
            until("the new version is called", || async {
                (seen.load(Ordering::Relaxed) >= before + 4 * CALLERS as u32).then_some(())
            })
            .await;
        }
        done.send_replace(true);
    };
    let without = futures::future::join_all((0..CALLERS).map(|_| calling("/switch", served)));
    let with = futures::future::join_all((0..CALLERS).map(|_| calling("/v1/switch", served)));
    let ((), without, with) = tokio::join!(switching, without, with);
    println!(
        "{} calls while {} versions came and went, 0 errors",
        seen.load(Ordering::Relaxed),
        LAST_VERSION - 1
    );
    assert!(
        with.iter().all(|versions| *versions == BTreeSet::from([1])),
        "{with:?}"
    );
    assert!(
        without
            .iter()
            .all(|versions| versions.contains(&LAST_VERSION)),
        "{without:?}"
    );
}

#[tokio::test]
async fn a_deprecated_version_says_so_in_each_answer_and_a_retired_one_points_to_its_successor() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let body = json!({
        "flowName": "quotes", "path": "orders/{id}", "responseSchema": true,
        "requestSchema": {"required": ["total"]}, "cors": {"origins": ["https://shop.example"]},
    });
    let api = format!(
        "{PATH}/{}",
        text(&app.api.post(PATH, &body).await.expect(201)["id"])
    );
    let key = app
        .api
        .post(
            &format!("{api}/keys"),
            &json!({"consumer": "acme", "dailyLimit": 4}),
        )
        .await
        .expect(201);
    let consumer = app.api.with_key(&text(&key["key"]));
    let stranger = app.api.without_key();
    let deprecate = json!({"sunsetDate": "2020-01-01"});
    app.api
        .post(&format!("{api}/versions/v1/deprecate"), &deprecate)
        .await
        .expect(200);
    // The only version serves whom no version is asked of, and has no successor yet.
    let alone = consumer.post("/orders/7", &json!({"total": 1})).await;
    assert_eq!(alone.status, 200);
    assert_eq!(marks(&alone), ["true", "Wed, 01 Jan 2020 00:00:00 GMT", ""]);
    app.api
        .post(&format!("{api}/versions"), &json!({"version": "v2"}))
        .await
        .expect(201);

    let link = format!("<{}/v2/orders/a%2Fb>; rel=\"successor-version\"", app.base);
    let post = |who: &Rest, body: &'static str| {
        let request = who
            .request("POST", "/v1/orders/a%2Fb")
            .header("content-type", "application/json");
        Rest::send(request.body(body))
    };
    for (who, body, status) in [
        (&consumer, r#"{"total":1}"#, 200),
        (&stranger, r#"{"total":1}"#, 401),
        (&consumer, "{}", 422),
        (&consumer, "{", 400),
        (&consumer, r#"{"total":1}"#, 429),
    ] {
        let answer = post(who, body).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert_eq!(
            marks(&answer),
            ["true", "Wed, 01 Jan 2020 00:00:00 GMT", &link],
            "{status}"
        );
    }
    let current = stranger.post("/v2/orders/7", &json!({})).await;
    assert_eq!(current.status, 401);
    assert_eq!(marks(&current), [""; 3]);

    app.api
        .post(&format!("{api}/versions/v1/retire"), &json!({}))
        .await
        .expect(200);
    // It is gone for everybody, whoever asks.
    for who in [&consumer, &stranger] {
        let gone = post(who, "{}").await;
        assert_eq!(gone.status, 410);
        assert_eq!(marks(&gone), [""; 3]);
        let body = gone.json();
        let url = format!("{}/v2/orders/a%2Fb", app.base);
        assert_eq!(&body["currentVersion"], &json!("v2"));
        assert_eq!(&body["currentUrl"], &json!(url));
    }
}

fn marks(answer: &Answer) -> [&str; 3] {
    [
        answer.header("deprecation"),
        answer.header("sunset"),
        answer.header("link"),
    ]
}
