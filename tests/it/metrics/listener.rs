//! The listener of the metrics: its port, its TLS and its bounds.

use kanat_tests::{Rest, TestApp, wait};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{Scrape, address, start};

#[tokio::test]
async fn metrics_are_on_their_own_port_only() {
    let (app, metrics) = start().await;
    app.api.get("/metrics").await.expect_error(404, "NOT_FOUND");
    let at = app.api.without_key();
    for (path, status) in [
        ("/health", 200),
        ("/ready", 200),
        ("/metrics", 200),
        ("/", 404),
        ("/api/v1/flows", 404),
        ("/webhooks/receive/x", 404),
    ] {
        assert_eq!(
            at.get(&format!("{metrics}{path}")).await.status,
            status,
            "{path}"
        );
    }
    let refused = at.post(&format!("{metrics}/metrics"), &json!({})).await;
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), "GET, HEAD");

    let without = TestApp::start().await;
    without
        .api
        .get("/metrics")
        .await
        .expect_error(404, "NOT_FOUND");
    assert!(
        !without.log().contains("metrics are served"),
        "{}",
        without.log()
    );
}

#[tokio::test]
async fn metrics_are_read_over_tls_and_a_port_alone_is_one_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let authority = kanat_tests::authority::Authority::new(folder.path(), "ours");
    let identity = authority.identity("metrics");
    let app = TestApp::start_with(&[
        ("KANAT_METRICS_LISTEN", "0"),
        ("KANAT_METRICS_TLS_CERT", &identity.certificate),
        ("KANAT_METRICS_TLS_KEY", &identity.key),
    ])
    .await;
    let metrics = address(&app.log());
    assert!(metrics.starts_with("https://127.0.0.1:"), "{metrics}");
    Scrape::of(&Rest::trusting(&metrics, "", &authority.pem()), &metrics).await;
    let plain = metrics.replace("https://", "http://");
    let clear = Rest::try_send(
        app.api
            .without_key()
            .request("GET", &format!("{plain}/metrics")),
    )
    .await;
    assert!(clear.is_err(), "{clear:?}");
}

#[tokio::test]
async fn one_client_does_not_take_all_places_of_the_metrics() {
    let (app, metrics) = start().await;
    let address = metrics.trim_start_matches("http://");
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(TcpStream::connect(address).await.unwrap());
    }
    // Another address of this machine is another client.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(address.parse().unwrap()).await.unwrap();
    let request = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    other.write_all(request).await.unwrap();
    let mut answer = String::new();
    let read = other.read_to_string(&mut answer);
    tokio::time::timeout(wait::DEADLINE, read)
        .await
        .expect("an answer in time")
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 "),
        "{answer}\n{}",
        app.log()
    );
    // Not because the others were given up meanwhile.
    let first = held[0].try_read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(first, Err(std::io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn metrics_that_are_open_to_other_machines_without_tls_are_warned_of() {
    let app = TestApp::start_with(&[("KANAT_METRICS_LISTEN", "0.0.0.0:0")]).await;
    assert!(
        app.log().contains("is open to other machines without TLS"),
        "{}",
        app.log()
    );
}
