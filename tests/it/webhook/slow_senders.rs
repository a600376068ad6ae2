//! Senders that declare a body and do not send it hold up nobody else, and are let go.

use kanat_tests::{FakeTarget, TestApp, raw};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::passthrough;

#[tokio::test]
async fn bodies_that_are_only_declared_take_no_room() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, slow) = app.api.deployed(&passthrough("slow")).await;
    let (_, other) = app.api.deployed(&passthrough("other")).await;
    let path = slow
        .rsplit_once("/webhooks")
        .expect("a webhook's address")
        .1;
    let head =
        format!("POST /webhooks{path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n");
    let mut held = Vec::new();
    for _ in 0..150 {
        let mut sender = TcpStream::connect(app.base.trim_start_matches("http://"))
            .await
            .unwrap();
        sender.write_all(head.as_bytes()).await.unwrap();
        held.push(sender);
    }
    // Each of the declared bodies would take 2 MiB of 256.
    for n in 0..50 {
        app.api.webhook(&other, &json!({ "n": n })).await;
    }
    for mut sender in held {
        let mut status = [0; 12];
        sender.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 408");
    }
    let whole = raw::request(
        &[
            &format!("POST /webhooks{path}"),
            "content-type: application/json",
        ],
        b"{}",
    );
    assert_eq!(raw::send(&app.base, &whole).await.status, 202);
}
