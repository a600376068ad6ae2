//! Targets that do everything wrong, side by side with one that does not: each failure is a counted attempt with its
//! reason, and nobody else waits for it.

use std::time::Duration;

use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

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
                    // It fails when the other side has had enough.
                    connections.spawn(write(stream));
                }
            }
        });
        Self { address, _task: task }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A byte a second, without end.
async fn drip(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await?;
    loop {
        stream.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn gibibyte(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 1073741824\r\n\r\n").await?;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..1024 {
        stream.write_all(&megabyte).await?;
    }
    Ok(())
}

/// Less than was said.
async fn too_short(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}").await?;
    stream.shutdown().await
}

/// No TLS, where TLS was meant.
async fn no_tls(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
    stream.shutdown().await
}

fn flow(name: &str) -> String {
    format!(
        "flow: {name}\nversion: 1\nsource:\n  trigger: webhook\ntarget:\n  connector: {name}\n  endpoint: /in\n  method: POST\n  timeout: 2s\non_error:\n  retry: 1x fixed(20ms)\n"
    )
}

#[cfg(target_os = "linux")]
fn memory_mib(app: &TestApp) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", app.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn every_way_to_fail_is_a_counted_attempt_with_its_reason_and_others_are_delivered() {
    let app = TestApp::start().await;
    let refused = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let reset = FakeTarget::scripted(|_, _| Reply::Reset).await;
    let hang = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let working = FakeTarget::start().await;
    let elsewhere = working.url();
    let redirect = FakeTarget::scripted(move |_, _| {
        Reply::Answer(302, vec![("location".to_owned(), format!("{elsewhere}/elsewhere"))], String::new())
    })
    .await;
    let broken = FakeTarget::scripted(|_, _| status(500)).await;
    let (drip, gibibyte) = (Raw::start(drip).await, Raw::start(gibibyte).await);
    let (too_short, no_tls) = (Raw::start(too_short).await, Raw::start(no_tls).await);
    let cases = [
        ("refuse", refused, "network"),
        ("reset", reset.url(), "network"),
        ("hang", hang.url(), "timeout"),
        ("drip", drip.url(), "timeout"),
        ("gibibyte", gibibyte.url(), "status"),
        ("redirect", redirect.url(), "status"),
        ("bad-tls", format!("https://{}", no_tls.address), "network"),
        ("wrong-length", too_short.url(), "network"),
        ("broken", broken.url(), "status"),
    ];
    app.api.http_instance("working", &working.url()).await;
    let (_, free) = app.api.deployed(&flow("working")).await;
    app.api.message_becomes(&app.api.webhook(&free, &json!({})).await, "delivered").await;
    #[cfg(target_os = "linux")]
    let before = memory_mib(&app);

    let mut sent = Vec::new();
    for (name, url, kind) in &cases {
        app.api.http_instance(name, url).await;
        let (_, webhook) = app.api.deployed(&flow(name)).await;
        sent.push((*name, *kind, app.api.webhook(&webhook, &json!({"n": 1})).await));
    }
    for n in 0..10 {
        app.api.message_becomes(&app.api.webhook(&free, &json!({ "n": n })).await, "delivered").await;
    }
    for (name, kind, id) in &sent {
        let message = app.api.message_becomes(id, "dead_letter").await;
        println!(
            "{name}: {} attempts, {}: {}",
            message["attempts"], message["error"]["kind"], message["error"]["message"]
        );
        assert_eq!(message["attempts"], 2, "{name}: {message}");
        assert_eq!(message["error"]["kind"], *kind, "{name}: {message}");
    }
    // A redirect leads nowhere: what came to the working target is its own.
    assert_eq!(working.received().len(), 11);
    #[cfg(target_os = "linux")]
    {
        let grown = memory_mib(&app) - before;
        println!("{} targets that fail, 0 others held up, {grown} MiB more at most", cases.len());
        assert!(grown < 64, "{grown} MiB more than before");
    }
}
