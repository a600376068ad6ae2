//! Peers that do not speak HTTP, or speak it badly, get an answer or a closed connection, and
//! disturb nobody.

use std::time::Duration;

use kanat_tests::{FakeTarget, TestApp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::webhook::passthrough;

/// Time within which a peer has to be answered, far longer than an answer takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends these bytes and nothing more; gives what came back.
async fn say(app: &TestApp, bytes: &[u8]) -> Vec<u8> {
    let mut peer = TcpStream::connect(app.base.trim_start_matches("http://"))
        .await
        .unwrap();
    // The service may close, or reset, before it has read all.
    let _ = peer.write_all(bytes).await;
    let _ = peer.shutdown().await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(ANSWER_TIMEOUT, peer.read_to_end(&mut answer)).await;
    assert!(
        read.is_ok(),
        "kept waiting by {:?}",
        String::from_utf8_lossy(bytes)
    );
    answer
}

#[tokio::test]
async fn malformed_requests_are_refused_and_others_served() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("undisturbed")).await;
    let path = url.strip_prefix(&app.base).unwrap();
    let post = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n");
    let refused: &[(String, &str)] = &[
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), "400"),
        (format!("{post}content-length: -1\r\n\r\n"), "400"),
        (
            format!("{post}content-length: 1\r\ncontent-length: 2\r\n\r\n{{}}"),
            "400",
        ),
        (
            format!("{post}transfer-encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n"),
            "400",
        ),
        (
            format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(200_000)),
            "431",
        ),
        (
            "GET /health HTTP/1.1\r\nconnection: close\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "GET /health HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
            "4",
        ),
        (
            "GET /api/v1/%ff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
            "400",
        ),
    ];
    for (request, status) in refused {
        let answer = say(&app, request.as_bytes()).await;
        let answer = String::from_utf8_lossy(&answer);
        let line = answer.lines().next().unwrap_or_default();
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status}")),
            "{line:?} to {:?}",
            &request[..request.len().min(90)]
        );
    }
    let probe = say(&app, b"GET /health HTTP/1.0\r\n\r\n").await;
    assert!(
        probe.starts_with(b"HTTP/1.0 200"),
        "{}",
        String::from_utf8_lossy(&probe)
    );
    // A body that breaks off is nobody's message.
    say(
        &app,
        format!("{post}content-length: 100\r\n\r\n{{\"half\":").as_bytes(),
    )
    .await;
    let list = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(list["pagination"]["total"], 0, "{list}");
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "delivered").await;
}

#[tokio::test]
async fn any_bytes_on_a_connection_leave_the_service_standing() {
    let app = TestApp::start().await;
    let mut runner = TestRunner::deterministic();
    let starts = [
        "",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST /webhooks/receive/x HTTP/1.1\r\nhost: x\r\n",
        "\x16\x03\x01",
    ];
    for start in starts {
        for _ in 0..40 {
            let noise = proptest::collection::vec(any::<u8>(), 0..300)
                .new_tree(&mut runner)
                .unwrap()
                .current();
            say(&app, &[start.as_bytes(), &noise].concat()).await;
        }
    }
    app.api.without_key().get("/health").await.expect(200);
    assert!(!app.log().contains("panicked"), "{}", app.log());
}
