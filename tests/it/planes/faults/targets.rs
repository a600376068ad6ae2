//! Targets that do everything wrong, side by side with one that does not: each failure is a counted
//! attempt with its reason, and nobody else waits for it.

use std::time::Duration;

use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp, memory};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::tls::{Authority, TlsTarget};

/// How much more memory all of them together may take, in KiB.
const MAX_GROWTH_KIB: u64 = 64 << 10;

/// Messages to each target that fails, all under way while others are delivered.
const EACH: usize = 3;

/// A target that writes whatever bytes it likes to its connection.
struct Raw {
    address: String,
    _task: JoinSet<()>,
}

impl Raw {
    async fn start<W>(write: impl Fn(TcpStream) -> W + Send + 'static) -> Self
    where
        W: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4096];
                if stream.read(&mut head).await.is_ok() {
                    // It fails when the other side has closed the connection.
                    connections.spawn(write(stream));
                }
            }
        });
        Self {
            address,
            _task: task,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A byte a second, without end.
async fn drip(mut stream: TcpStream) -> std::io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        .await?;
    loop {
        stream.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn gibibyte(mut stream: TcpStream) -> std::io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 1073741824\r\n\r\n")
        .await?;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        stream.write_all(&megabyte).await?;
    }
    Ok(())
}

/// Less than was said.
async fn too_short(mut stream: TcpStream) -> std::io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}")
        .await?;
    stream.shutdown().await
}

/// No TLS, where TLS was meant.
async fn no_tls(mut stream: TcpStream) -> std::io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        .await?;
    stream.shutdown().await
}

/// A flow with a short timeout where the target hangs, and a long one, for a busy machine,
/// elsewhere.
fn flow(name: &str) -> String {
    let timeout = if matches!(name, "hang" | "drip") {
        "2s"
    } else {
        "30s"
    };
    format!(
        r"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: {name}
  endpoint: /in
  method: POST
  timeout: {timeout}
on_error:
  retry: 1x fixed(20ms)
"
    )
}

#[tokio::test]
async fn each_kind_of_failure_is_a_counted_attempt_with_its_reason_and_others_are_delivered() {
    let authority = Authority::new();
    let trusted = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&trusted, authority.pem()).unwrap();
    let app = TestApp::start_with(&[("SSL_CERT_FILE", trusted.path().to_str().unwrap())]).await;
    // Nobody listens there; a port that was free a moment ago may be another test's by now.
    let refused = "http://127.0.0.1:9".to_owned();
    let reset = FakeTarget::scripted(|_, _| Reply::Reset).await;
    let hang = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let working = FakeTarget::start().await;
    let elsewhere = working.url();
    let redirect = FakeTarget::scripted(move |_, _| {
        Reply::Answer(
            302,
            vec![("location".to_owned(), format!("{elsewhere}/elsewhere"))],
            String::new(),
        )
    })
    .await;
    let broken = FakeTarget::scripted(|_, _| status(500)).await;
    let drip = Raw::start(drip).await;
    let gibibyte = Raw::start(gibibyte).await;
    let too_short = Raw::start(too_short).await;
    let no_tls = Raw::start(no_tls).await;
    let self_signed = TlsTarget::self_signed("127.0.0.1").await;
    let expired = authority.expired("127.0.0.1").await;
    let other = authority.good("elsewhere.example").await;
    let cases = [
        (
            "refuse",
            refused,
            "network",
            ": connection refused by 127.0.0.1:9",
        ),
        (
            "reset",
            reset.url(),
            "network",
            " closed the connection before it answered",
        ),
        ("hang", hang.url(), "timeout", "no answer within 2000 ms"),
        ("drip", drip.url(), "timeout", "no answer within 2000 ms"),
        ("gibibyte", gibibyte.url(), "status", "500"),
        ("redirect", redirect.url(), "status", "302"),
        (
            "no-tls",
            format!("https://{}", no_tls.address),
            "tls",
            " does not speak TLS",
        ),
        (
            "self-signed",
            self_signed.url(),
            "tls",
            "comes from an authority that is not trusted here",
        ),
        ("wrong-name", other.url(), "tls", "is for another name"),
        ("expired", expired.url(), "tls", "has expired"),
        (
            "wrong-length",
            too_short.url(),
            "network",
            " broke off its answer",
        ),
        ("broken", broken.url(), "status", "500"),
    ];
    let good = authority.good("127.0.0.1").await;
    app.api.http_instance("good-tls", &good.url()).await;
    let (_, over_tls) = app.api.deployed(&flow("good-tls")).await;
    app.api
        .message_becomes(&app.api.webhook(&over_tls, &json!({})).await, "delivered")
        .await;
    app.api.http_instance("working", &working.url()).await;
    let (_, free) = app.api.deployed(&flow("working")).await;
    app.api
        .message_becomes(&app.api.webhook(&free, &json!({})).await, "delivered")
        .await;
    let before = memory::resident_kib(app.pid());

    let mut sent = Vec::new();
    for (name, url, kind, reason) in &cases {
        app.api.http_instance(name, url).await;
        let (_, webhook) = app.api.deployed(&flow(name)).await;
        for n in 0..EACH {
            sent.push((
                *name,
                *kind,
                *reason,
                app.api.webhook(&webhook, &json!({ "n": n })).await,
            ));
        }
    }
    for n in 0..10 {
        app.api
            .message_becomes(
                &app.api.webhook(&free, &json!({ "n": n })).await,
                "delivered",
            )
            .await;
    }
    for (name, kind, reason, id) in &sent {
        let message = app.api.message_becomes(id, "dead_letter").await;
        println!(
            "{name}: {} attempts, {}: {}",
            message["attempts"], message["error"]["kind"], message["error"]["message"]
        );
        assert_eq!(message["attempts"], 2, "{name}: {message}");
        assert_eq!(message["error"]["kind"], *kind, "{name}: {message}");
        let told = message["error"]["message"].as_str().unwrap();
        assert!(
            told.starts_with("POST http") && told.contains(reason),
            "{name}: {message}"
        );
    }
    // A redirect leads nowhere: what came to the working target is its own.
    assert_eq!(working.received().len(), 11);
    let grown = memory::peak_kib(app.pid()) - before;
    println!(
        "{} targets that fail, 0 others held up, {} MiB more at most",
        cases.len(),
        grown >> 10
    );
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more than before");
}
