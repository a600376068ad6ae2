//! A process that may open no more files goes on with what is open, says so once, and takes
//! connections again as soon as it may.

use kanat_tests::wait::until;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::webhook::passthrough;

const FAILURE: &str = "cannot accept a connection";

/// Posts to a webhook over a connection that is kept; gives the status line.
async fn post(peer: &mut TcpStream, path: &str) -> String {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: \
         2\r\n\r\n{{}}"
    );
    peer.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 4096];
    let length = peer.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn a_process_without_descriptors_goes_on_with_what_is_open() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("descriptors")).await;
    let path = format!(
        "/webhooks{}",
        url.rsplit_once("/webhooks").expect("a webhook's address").1
    );
    let address = app.base.trim_start_matches("http://").to_owned();
    let mut kept = TcpStream::connect(&address).await.unwrap();
    assert_eq!(post(&mut kept, &path).await, "HTTP/1.1 202 Accepted");

    let before = app.limit_open_files(1).await;
    let mut late = TcpStream::connect(&address).await.unwrap();
    for _ in 0..20 {
        assert_eq!(post(&mut kept, &path).await, "HTTP/1.1 202 Accepted");
    }
    until("the failure is told", || async {
        app.log().contains(FAILURE).then_some(())
    })
    .await;

    app.limit_open_files(before).await;
    assert_eq!(post(&mut late, &path).await, "HTTP/1.1 202 Accepted");
    app.api.webhook(&url, &json!({})).await;
    assert_eq!(app.log().matches(FAILURE).count(), 1, "{}", app.log());
}
