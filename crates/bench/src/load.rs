//! The load: connections that post one order after another, each waiting for its answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::order;

/// What a load came to.
pub struct Outcome {
    pub acked: u64,
    pub elapsed: Duration,
    /// Answer times in nanoseconds, sorted.
    pub latencies: Vec<u64>,
}

/// What each request is.
#[derive(Clone)]
pub struct Call {
    pub path: String,
    pub bearer: Option<String>,
    /// The body, by its number and the nanoseconds since the start.
    pub body: fn(u64, u64) -> String,
    /// The status of an answer that is none but right.
    pub status: u16,
}

/// Posts orders to `path` for `length`, over `connections`. Instants in the orders count from `start`.
pub async fn run(
    address: SocketAddr,
    path: &str,
    connections: usize,
    length: Duration,
    start: Instant,
) -> Result<Outcome> {
    let call = Call { path: path.to_owned(), bearer: None, body: order::order, status: 202 };
    run_calls(address, &call, connections, length, start).await
}

/// Posts what `call` says.
pub async fn run_calls(
    address: SocketAddr,
    call: &Call,
    connections: usize,
    length: Duration,
    start: Instant,
) -> Result<Outcome> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for connection in 0..connections {
        let first = connection as u64 * 1_000_000_000;
        tasks.spawn(post(address, call.clone(), first, begun + length, start));
    }
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done.context("a connection's task failed")??);
    }
    let elapsed = begun.elapsed();
    latencies.sort_unstable();
    Ok(Outcome { acked: latencies.len() as u64, elapsed, latencies })
}

async fn post(address: SocketAddr, call: Call, first: u64, until: Instant, start: Instant) -> Result<Vec<u64>> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut latencies = Vec::with_capacity(1 << 16);
    for number in first.. {
        let sent = Instant::now();
        if sent >= until {
            break;
        }
        let body = (call.body)(number, nanos(sent - start));
        let mut request = Request::post(&call.path).header("host", "bench").header("content-type", "application/json");
        if let Some(bearer) = &call.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        sender.ready().await?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status != call.status {
            bail!("the server answered {status}: {}", String::from_utf8_lossy(&body));
        }
        latencies.push(nanos(sent.elapsed()));
    }
    Ok(latencies)
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
