//! A listener that shuts down tells those who keep their connections that this was the last answer.
#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response};
use http_body_util::BodyExt;
use kanat_net::{Inbound, body, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A listener that answers once it has read a body, how it is shut down, and the task that serves
/// it.
async fn listener() -> (SocketAddr, CancellationToken, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = tower::service_fn(|request: Request<Inbound>| async {
        let _ = request.into_body().collect().await;
        Ok::<_, Infallible>(Response::new(body::full("done")))
    });
    let shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(server::serve(
        listener,
        service,
        server::Options::default(),
        shutdown.clone(),
    ));
    (address, shutdown, tasks)
}

/// Everybody here shares one thread: who was woken before the port closed has run by then.
async fn is_closed(address: SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {}
}

#[tokio::test]
async fn an_answer_after_the_shutdown_says_that_the_connection_closes() {
    let (address, shutdown, mut tasks) = listener().await;
    let mut peer = TcpStream::connect(address).await.unwrap();
    let mut answer = vec![0; 4096];
    peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na")
        .await
        .unwrap();
    let length = peer.read(&mut answer).await.unwrap();
    let first = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(
        first.starts_with("HTTP/1.1 200") && !first.contains("connection: close"),
        "{first}"
    );

    // In flight when the listener shuts down: its head has been read, its body has not.
    peer.write_all(
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n",
    )
    .await
    .unwrap();
    let length = peer.read(&mut answer).await.unwrap();
    assert!(
        answer[..length].starts_with(b"HTTP/1.1 100"),
        "{:?}",
        String::from_utf8_lossy(&answer[..length])
    );
    shutdown.cancel();
    is_closed(address).await;
    peer.write_all(b"ab").await.unwrap();
    let mut last = String::new();
    peer.read_to_string(&mut last).await.unwrap();
    assert!(
        last.starts_with("HTTP/1.1 200") && last.contains("connection: close"),
        "{last}"
    );
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn an_http_2_connection_gets_a_goaway() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GO_AWAY: u8 = 7;
    let (address, shutdown, _tasks) = listener().await;
    let mut peer = TcpStream::connect(address).await.unwrap();
    peer.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &SETTINGS].concat())
        .await
        .unwrap();
    frame(&mut peer).await;
    shutdown.cancel();
    while frame(&mut peer).await != GO_AWAY {}
}

/// Reads a frame; gives its type.
async fn frame(peer: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    peer.read_exact(&mut head).await.unwrap();
    let mut rest = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    peer.read_exact(&mut rest).await.unwrap();
    head[3]
}
