//! Limits of keys on one node: exact, shown in headers, counted, and kept across restarts. Tests of
//! three nodes are in `planes`.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_tests::calls::Calls;
use kanat_tests::{TestApp, rest::text, until};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{PATH, quote};

/// Calls a second.
const LIMIT: u32 = 5;
const TRIED: u32 = 40;

/// Time without a call after which the bucket overflows, which no lower bound can account for.
const FULL: Duration = Duration::from_millis(800);

#[tokio::test]
async fn a_node_alone_lets_in_exactly_what_a_key_allows() {
    let mut app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let body = json!({"flowName": "quotes", "path": "orders", "responseSchema": true});
    let keys = format!(
        "{PATH}/{}/keys",
        text(&app.api.post(PATH, &body).await.expect(201)["id"])
    );
    let made = async |body: Value| app.api.post(&keys, &body).await.expect(201);
    let rate =
        made(json!({"consumer": "rate", "rateLimitPerSecond": LIMIT, "dailyLimit": 100_000})).await;
    let daily = made(json!({"consumer": "daily", "dailyLimit": 3})).await;
    let consumer = app.api.with_key(&text(&rate["key"]));

    let first = consumer.post("/orders", &json!({})).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_eq!(first.header("ratelimit-limit"), "5", "{}", first.text);
    assert_eq!(first.header("ratelimit-policy"), "5;w=1, 100000;w=86400");
    assert_eq!(first.header("retry-after"), "");
    let begun = Instant::now();
    let calls = Calls::make(
        &[consumer],
        "/orders",
        TRIED,
        begun + Duration::from_secs(3),
    )
    .await;
    calls.assert_within(LIMIT);
    let mut all: Vec<Instant> = calls
        .admitted
        .iter()
        .map(|(from, _)| *from)
        .chain(calls.refused.clone())
        .collect();
    all.sort_unstable();
    let last = *all.last().unwrap();
    if all.windows(2).all(|pair| pair[1] - pair[0] < FULL) {
        let gained = (f64::from(LIMIT) * (last - begun).as_secs_f64()).floor() as usize;
        let least = usize::try_from(LIMIT).unwrap() - 1 + gained;
        assert!(
            calls.admitted.len() >= least,
            "{} of at least {least}",
            calls.admitted.len()
        );
    }

    // What is refused counts for no limit, and is not told as use.
    let count = calls.admitted.len() + 1;
    let answered = Instant::now();
    let counted = until("all calls are counted", || async {
        let seen = one(&app, &keys, &rate).await;
        (seen["requestCount"] == count).then_some(seen)
    })
    .await;
    println!(
        "{count} calls counted {} ms after the last, {} refused",
        answered.elapsed().as_millis(),
        calls.refused.len()
    );
    let told = Timestamp::parse(&text(&counted["lastUsedAt"])).unwrap();
    let last = calls.last.unwrap();
    assert!(
        (told.as_millis() - last.as_millis()).abs() < 5_000,
        "last used at {last}, and {told} is told"
    );

    // A day's calls are spent, and stay so when the process ends or dies.
    let spender = app.api.with_key(&text(&daily["key"]));
    for left in ["2", "1", "0"] {
        let answer = spender.post("/orders", &json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(
            answer.header("ratelimit-remaining"),
            left,
            "{}",
            answer.text
        );
    }
    assert_eq!(app.terminate().await, Some(0));
    app.restart().await;
    let spent = spender.post("/orders", &json!({})).await;
    let pause = spent.header("retry-after").parse::<u64>().unwrap();
    let reset = spent.header("ratelimit-reset");
    assert!(
        (1..=86_400).contains(&pause) && pause.to_string() == reset,
        "{pause}, {reset}"
    );
    spent.expect_error(429, "RESOURCE_EXHAUSTED");
    assert_eq!(
        one(&app, &keys, &daily).await["requestCount"],
        3,
        "a node that goes tells what was used"
    );
    app.kill().await;
    app.restart().await;
    assert_eq!(spender.post("/orders", &json!({})).await.status, 429);
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
