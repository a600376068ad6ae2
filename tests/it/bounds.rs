//! Bounds of the management API for each caller: memory for bodies, and concurrent calls.

use std::time::Duration;

use kanat_tests::memory::{peak_kib, resident_kib};
use kanat_tests::{Rest, TestApp, app, raw, wait};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

const IMPORT: &str = "POST /api/v1/lookup-tables/x/import";

/// A connection whose request has sent its head, and nothing of a body of `length` bytes.
async fn head(api: &Rest, line: &str, key: &str, length: usize) -> TcpStream {
    let authorization = format!("authorization: Bearer {key}");
    opened(
        api,
        &[line, &authorization, "content-type: text/csv"],
        length,
    )
    .await
}

/// Begins a call by gRPC-Web with a body of `length` bytes, with a key or without.
async fn grpc_web(api: &Rest, method: &str, key: Option<&str>, length: usize) -> TcpStream {
    let line = format!("POST /{method}");
    let authorization = key.map(|key| format!("authorization: Bearer {key}"));
    let mut lines = vec![line.as_str(), "content-type: application/grpc-web"];
    lines.extend(authorization.as_deref());
    opened(api, &lines, length).await
}

async fn opened(api: &Rest, lines: &[&str], length: usize) -> TcpStream {
    let mut peer = TcpStream::connect(api.base.trim_start_matches("http://"))
        .await
        .unwrap();
    let length = format!("content-length: {length}");
    let lines = [lines, &[length.as_str()]].concat();
    peer.write_all(&raw::request(&lines, &[])).await.unwrap();
    peer
}

/// Sends more of a body, fast enough to be waited for, until the connection is closed.
async fn drip(peer: &mut (impl AsyncWrite + Unpin)) {
    while peer.write_all(&[b' '; 4096]).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn answer(peer: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = vec![0; 16 << 10];
    let read = tokio::time::timeout(wait::DEADLINE, peer.read(&mut answer)).await;
    let read = read.expect("an answer in time").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[tokio::test]
async fn a_key_is_judged_before_the_body_has_come() {
    let app = TestApp::start().await;
    let viewer = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "v", "role": "viewer"}))
        .await
        .expect(201);
    let viewer = viewer["key"].as_str().unwrap();
    for (key, status) in [("x", 401), ("kanat_ak_of_nobody", 401), (viewer, 403)] {
        for line in [IMPORT, "POST /api/v1/flows", "POST /api/v1/batch-jobs"] {
            let mut peer = head(&app.api, line, key, 1 << 20).await;
            let answer = answer(&mut peer).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{line} with {key}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn bodies_that_do_not_end_have_so_much_room_and_no_more() {
    const BODIES: usize = 40;
    const BODY: usize = 15 << 20;
    let app = TestApp::start().await;
    let other = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "other"}))
        .await
        .expect(201);
    let other = app.api.with_key(other["key"].as_str().unwrap());
    let before = resident_kib(app.pid());
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..BODIES {
        let api = app.api.clone();
        senders.spawn(async move {
            let mut peer = head(&api, IMPORT, app::KEY, 16 << 20).await;
            // Who is refused meanwhile need not send the rest.
            let _ = peer.write_all(&vec![b' '; BODY]).await;
            let (mut from, mut to) = peer.split();
            tokio::select! {
                answer = answer(&mut from) => answer,
                () = drip(&mut to) => panic!("the connection was closed without an answer"),
            }
        });
    }
    // One caller has a quarter of the 256 MiB.
    for _ in 0..BODIES - (64 << 20) / BODY {
        let answer = senders.join_next().await.unwrap().unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"),
            "{answer}"
        );
    }
    let grown = peak_kib(app.pid()) - before;
    assert!(grown < (200 << 10), "it grew by {} MiB", grown >> 10);
    other
        .post("/api/v1/lookup-tables", &json!({"name": "meanwhile"}))
        .await
        .expect(201);
    senders.shutdown().await;
    let table = json!({"name": "after"});
    let made = async || app.api.post("/api/v1/lookup-tables", &table).await.status == 201;
    wait::until("there is room again", async || made().await.then_some(())).await;
}

#[tokio::test]
async fn one_caller_has_so_many_calls_waiting_and_no_more() {
    let app = TestApp::start().await;
    let other = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "other"}))
        .await
        .expect(201);
    let other = app.api.with_key(other["key"].as_str().unwrap());
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let api = app.api.with_key(app::KEY);
        senders.spawn(async move {
            // A sender tries again: a call of the list below can take the last place before it.
            loop {
                let mut peer = head(&api, IMPORT, app::KEY, 16 << 20).await;
                drip(&mut peer).await;
            }
        });
    }
    let list = || app.api.get("/api/v1/flows");
    let refused = wait::until("64 calls wait", async || {
        Some(list().await).filter(|answer| answer.status != 200)
    })
    .await;
    assert_eq!(refused.header("retry-after"), "1");
    refused.expect_error(429, "RESOURCE_EXHAUSTED");
    other.get("/api/v1/flows").await.expect(200);
    senders.shutdown().await;
    wait::until("they are gone", async || {
        Some(list().await).filter(|answer| answer.status == 200)
    })
    .await;
}

#[tokio::test]
async fn a_stranger_who_lets_health_checks_lie_holds_up_nobody() {
    const SIZE: usize = 4 << 20;
    const CHECK: &str = "grpc.health.v1.Health/Check";
    let app = TestApp::start().await;
    let mut large = Vec::new();
    for _ in 0..8 {
        let mut peer = grpc_web(&app.api, CHECK, None, SIZE + 5).await;
        let prefix = u32::try_from(SIZE).unwrap().to_be_bytes();
        let begun = [&[0][..], &prefix, &[0; 60 << 10]].concat();
        peer.write_all(&begun).await.unwrap();
        large.push(peer);
    }
    for mut peer in large {
        let answer = answer(&mut peer).await;
        assert!(answer.contains("\r\ngrpc-status: 3\r\n"), "{answer}");
    }
    // Neither what has not come of a stranger's call nor of a caller's is waited for by a rotation.
    let create = "kanat.v1.LookupTableService/CreateLookupTable";
    let mut silent = [
        grpc_web(&app.api, CHECK, None, 100).await,
        grpc_web(&app.api, create, Some(app::KEY), 100).await,
    ];
    app.api
        .post("/api/v1/secrets/rotate", &json!({}))
        .await
        .expect(200);
    // They are given up: DEADLINE_EXCEEDED.
    for peer in &mut silent {
        let answer = answer(peer).await;
        assert!(answer.contains("\r\ngrpc-status: 4\r\n"), "{answer}");
    }
}
