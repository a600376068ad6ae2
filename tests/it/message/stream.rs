//! The live stream: one event for every change of state, resumed after the last one seen, across
//! restarts.

use std::time::Duration;

use futures::StreamExt;
use kanat_model::Timestamp;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};

use crate::webhook::passthrough;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

/// Reads events until `count` have come.
async fn events(
    api: &Rest,
    path: &str,
    last: Option<&str>,
    count: usize,
    after_open: impl AsyncFnOnce(),
) -> Vec<Event> {
    let mut request = api
        .request("GET", path)
        .header("accept", "text/event-stream");
    if let Some(id) = last {
        request = request.header("last-event-id", id);
    }
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream")
    );
    after_open().await;
    let mut stream = answer.bytes_stream();
    let mut text = String::new();
    let mut found = Vec::new();
    while found.len() < count {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
        while let Some((block, rest)) = text.split_once("\n\n") {
            found.extend(parse(block));
            text = rest.to_owned();
        }
    }
    found
}

fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|v| v.trim_start().to_owned())
    };
    let data = field("data:")?;
    Some(Event {
        name: field("event:")?,
        id: field("id:")?,
        data: serde_json::from_str(&data).unwrap(),
    })
}

#[tokio::test]
async fn shows_every_change_and_resumes_across_a_restart() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("streamed")).await;
    let path = format!("/api/v1/messages/stream?flowId={flow}");

    let first = events(&app.api, &path, None, 2, async || {
        app.api.webhook(&url, &json!({"n": 1})).await;
    })
    .await;
    let statuses: Vec<_> = first
        .iter()
        .map(|e| e.data["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses.last(), Some(&"delivered"), "{first:?}");
    assert!(first.iter().all(|event| event.name == "message"));

    let second = app.api.webhook(&url, &json!({"n": 2})).await;
    app.api.message_becomes(&second, "delivered").await;
    app.kill().await;
    app.restart().await;
    let resumed = events(&app.api, &path, Some(&first[0].id), 3, async || {}).await;
    assert_eq!(
        resumed[0], first[1],
        "what was seen after the given id comes again"
    );
    assert_eq!(resumed[1].data["id"], json!(second));
    assert_eq!(resumed[2].data["status"], "delivered");
}

#[tokio::test]
async fn a_stream_ends_with_its_key() {
    let app = TestApp::start().await;
    for end in ["revoked", "expired"] {
        let mut wanted = json!({ "name": end, "role": "viewer" });
        if end == "expired" {
            wanted["expiresAt"] = json!(Timestamp::now().after(Duration::from_secs(2)).to_string());
        }
        let made = app.api.post("/api/v1/api-keys", &wanted).await.expect(201);
        let viewer = app.api.with_key(made["key"].as_str().unwrap());
        let answer = viewer
            .request("GET", "/api/v1/messages/stream")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        if end == "revoked" {
            app.api
                .delete(&format!(
                    "/api/v1/api-keys/{}",
                    made["id"].as_str().unwrap()
                ))
                .await
                .expect(204);
        }
        let rest = tokio::time::timeout(Duration::from_secs(10), answer.text()).await;
        let rest = rest
            .unwrap_or_else(|_| panic!("the stream goes on though its key was {end}"))
            .unwrap();
        assert!(
            rest.starts_with("event: error\n") && rest.contains("UNAUTHENTICATED"),
            "{rest}"
        );
    }
}

#[tokio::test]
async fn streams_that_nobody_reads_hold_little_and_end() {
    const STREAMS: usize = 20;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("busy")).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let answer = app
            .api
            .request("GET", "/api/v1/messages/stream")
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        streams.push(answer);
    }
    let before = kanat_tests::memory::resident_kib(app.pid());
    // Each message has three events, and the output in one of them.
    let payload = json!({"text": "x".repeat(200_000)});
    for _ in 0..150 {
        app.api.webhook(&url, &payload).await;
    }
    let grown = kanat_tests::memory::peak_kib(app.pid()).saturating_sub(before);
    assert!(
        grown < (STREAMS as u64 * 6) << 10,
        "it grew by {} MiB",
        grown >> 10
    );
    let text = tokio::time::timeout(kanat_tests::wait::DEADLINE, streams.remove(0).text()).await;
    let text = text.expect("the stream ends").unwrap();
    let blocks: Vec<_> = text
        .split("\n\n")
        .filter(|block| block.contains("data:"))
        .collect();
    let (lagged, events) = blocks.split_last().unwrap();
    let last = parse(events.last().unwrap()).unwrap();
    let lagged = parse(lagged).unwrap();
    assert_eq!(lagged.name.as_str(), "lagged");
    assert_eq!(&lagged.id, &last.id);
    assert_eq!(lagged.data, json!({"resumeFrom": last.id}));
    let next = self::events(
        &app.api,
        "/api/v1/messages/stream",
        Some(&lagged.id),
        1,
        async || {},
    )
    .await;
    assert_eq!(next[0].name, "message");
}
