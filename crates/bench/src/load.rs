//! The load. In a closed loop each connection posts one order after another and waits for its
//! answer; in an open one orders are due at fixed instants, whether or not earlier ones were
//! answered, and latencies count from the instant that an order was due: a server that stands still
//! is charged for all that came due meanwhile.

mod open;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub use open::{Pace, open};

use crate::order;

/// Numbers that one connection may give to its orders.
const BLOCK: u64 = 10_000_000;

/// Each connection of each load has numbers of its own, so that every order of a run can be told
/// from every other.
static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

/// An order that was answered as it should be.
#[derive(Clone, Copy)]
pub struct Acked {
    pub number: u64,
    /// From when it was sent, or due, to its answer.
    pub nanos: u64,
}

/// What a load came to.
pub struct Outcome {
    pub acked: Vec<Acked>,
    pub elapsed: Duration,
    /// Answer times in nanoseconds, sorted.
    pub latencies: Vec<u64>,
}

impl Outcome {
    fn new(acked: Vec<Acked>, elapsed: Duration) -> Self {
        let mut latencies: Vec<u64> = acked.iter().map(|acked| acked.nanos).collect();
        latencies.sort_unstable();
        Self {
            acked,
            elapsed,
            latencies,
        }
    }

    pub fn per_second(&self) -> f64 {
        self.acked.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// What each request is.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub bearer: Option<String>,
    /// The body, by its number and the nanoseconds since the start.
    pub body: fn(u64, u64) -> String,
    /// The status of an answer that is none but right.
    pub status: u16,
}

impl Call {
    /// Posts orders to a webhook.
    pub fn webhook(path: &str) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            bearer: None,
            body: order::order,
            status: 202,
        }
    }
}

/// When a closed loop ends.
#[derive(Clone)]
pub enum Until {
    Time(Duration),
    /// When so many were answered over all connections, or the server is gone.
    Count(u64, Arc<AtomicU64>),
}

/// Calls over `connections` for `length`. Instants in the orders count from `start`.
pub async fn closed(
    address: SocketAddr,
    call: &Call,
    connections: usize,
    length: Duration,
    start: Instant,
) -> Result<Outcome> {
    until(address, call, connections, Until::Time(length), start).await
}

/// Calls over `connections` until that.
pub async fn until(
    address: SocketAddr,
    call: &Call,
    connections: usize,
    until: Until,
    start: Instant,
) -> Result<Outcome> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let call = call.clone();
        let until = until.clone();
        tasks.spawn(async move {
            let mut caller = Caller::connect(address, call, start).await?;
            let mut acked = Vec::with_capacity(1 << 16);
            caller
                .repeat(begun, &until, &mut acked)
                .await
                .map(|()| acked)
        });
    }
    let mut acked = Vec::new();
    while let Some(done) = tasks.join_next().await {
        acked.extend(done.context("a connection's task failed")??);
    }
    Ok(Outcome::new(acked, begun.elapsed()))
}

/// One connection.
struct Caller {
    sender: http1::SendRequest<Full<Bytes>>,
    call: Call,
    start: Instant,
    next: u64,
    _driver: JoinSet<hyper::Result<()>>,
}

impl Caller {
    async fn connect(address: SocketAddr, call: Call, start: Instant) -> Result<Self> {
        let stream = TcpStream::connect(address)
            .await
            .context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let next = NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK;
        Ok(Self {
            sender,
            call,
            start,
            next,
            _driver: driver,
        })
    }

    async fn repeat(
        &mut self,
        begun: Instant,
        until: &Until,
        acked: &mut Vec<Acked>,
    ) -> Result<()> {
        loop {
            let due = Instant::now();
            match until {
                Until::Time(length) if due >= begun + *length => return Ok(()),
                Until::Time(_) => acked.push(self.send(due).await?),
                Until::Count(count, answered) => {
                    if answered.load(Ordering::Relaxed) >= *count {
                        return Ok(());
                    }
                    // The server that was killed owes no answer.
                    let Ok(one) = self.send(due).await else {
                        return Ok(());
                    };
                    answered.fetch_add(1, Ordering::Relaxed);
                    acked.push(one);
                }
            }
        }
    }

    /// One call, which was due at that instant.
    async fn send(&mut self, due: Instant) -> Result<Acked> {
        let number = self.next;
        self.next += 1;
        let body = (self.call.body)(number, nanos(due - self.start));
        let mut request = Request::builder()
            .method(self.call.method.clone())
            .uri(&self.call.path);
        request = request
            .header("host", "bench")
            .header("content-type", "application/json");
        if let Some(bearer) = &self.call.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status != self.call.status {
            bail!(
                "the server answered {status}: {}",
                String::from_utf8_lossy(&body)
            );
        }
        Ok(Acked {
            number,
            nanos: nanos(due.elapsed()),
        })
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
