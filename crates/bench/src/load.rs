//! The load. In a closed loop each connection sends one call after another and waits for its
//! answer. In an open loop calls are due at fixed instants, whether or not earlier ones were
//! answered. Latencies then count from the instant that a call was due, so that a server that
//! stands still is charged for all that came due meanwhile.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::order;

/// Numbers that one connection may give to its orders.
const BLOCK: u64 = 10_000_000;

/// Next block of numbers: every order of a run has a number of its own.
static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

/// Instant from which the times in orders count.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A call that was answered with the right status.
#[derive(Clone, Copy)]
pub struct Ack {
    pub number: u64,
    /// Time from when the call was sent, or due, to its answer.
    pub nanos: u64,
}

/// Result of a load.
pub struct Outcome {
    pub acked: Vec<Ack>,
    pub elapsed: Duration,
    /// Answer times in nanoseconds, sorted.
    pub latencies: Vec<u64>,
}

/// One kind of request.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub bearer: Option<String>,
    /// Makes the body from its number and the nanoseconds since the start.
    pub body: fn(u64, u64) -> String,
    /// Status of a right answer.
    pub status: u16,
}

/// End of a closed loop.
#[derive(Clone)]
pub enum Until {
    Time(Duration),
    /// So many answers over all connections, or the end of the server.
    Count(u64, Arc<AtomicU64>),
}

/// Rate, length and connections of an open loop.
#[derive(Clone, Copy)]
pub struct Pace {
    pub per_second: u32,
    pub length: Duration,
    pub connections: usize,
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

impl Outcome {
    /// Gathers the calls of all connections.
    pub async fn gather(
        mut connections: JoinSet<Result<Vec<Ack>>>,
        begun: Instant,
    ) -> Result<Self> {
        let mut acked = Vec::new();
        while let Some(done) = connections.join_next().await {
            acked.extend(done.context("a connection's task failed")??);
        }
        let elapsed = begun.elapsed();
        let mut latencies: Vec<u64> = acked.iter().map(|ack: &Ack| ack.nanos).collect();
        latencies.sort_unstable();
        Ok(Self {
            acked,
            elapsed,
            latencies,
        })
    }

    pub fn per_second(&self) -> f64 {
        self.acked.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Sends calls in a closed loop on each of `connections`.
pub async fn closed(
    address: SocketAddr,
    call: &Call,
    connections: usize,
    until: Until,
) -> Result<Outcome> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let call = call.clone();
        let until = until.clone();
        tasks.spawn(async move {
            let mut caller = Caller::connect(address, call).await?;
            caller.repeat(begun, &until).await
        });
    }
    Outcome::gather(tasks, begun).await
}

/// Sends calls at fixed instants. One that finds no free connection is sent late, and its latency
/// includes the delay.
pub async fn open(address: SocketAddr, call: &Call, pace: Pace) -> Result<Outcome> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(Mutex::new(receiver));
    let mut tasks = JoinSet::new();
    for _ in 0..pace.connections {
        let mut caller = Caller::connect(address, call.clone()).await?;
        let receiver = Arc::clone(&receiver);
        tasks.spawn(async move {
            let mut acked = Vec::new();
            loop {
                let Some(due) = receiver.lock().await.recv().await else {
                    return Ok(acked);
                };
                acked.push(caller.send(due).await?);
            }
        });
    }
    let begun = Instant::now();
    // The runtime's clock ticks in milliseconds; a thread sleeps more exactly.
    std::thread::spawn(move || {
        let interval = Duration::from_secs(1) / pace.per_second.max(1);
        let mut due = begun + interval;
        while due < begun + pace.length {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if sender.send(due).is_err() {
                return;
            }
            due += interval;
        }
    });
    Outcome::gather(tasks, begun).await
}

/// One connection.
struct Caller {
    sender: http1::SendRequest<Full<Bytes>>,
    call: Call,
    next: u64,
    _driver: JoinSet<hyper::Result<()>>,
}

impl Caller {
    async fn connect(address: SocketAddr, call: Call) -> Result<Self> {
        LazyLock::force(&START);
        let stream = TcpStream::connect(address).await;
        let stream = stream.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self {
            sender,
            call,
            next: NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK,
            _driver: driver,
        })
    }

    async fn repeat(&mut self, begun: Instant, until: &Until) -> Result<Vec<Ack>> {
        let mut acked = Vec::with_capacity(1 << 16);
        loop {
            let due = Instant::now();
            match until {
                Until::Time(length) if due >= begun + *length => return Ok(acked),
                Until::Time(_) => acked.push(self.send(due).await?),
                Until::Count(count, answered) => {
                    if answered.load(Ordering::Relaxed) >= *count {
                        return Ok(acked);
                    }
                    // A server that was killed owes no answer.
                    let Ok(ack) = self.send(due).await else {
                        return Ok(acked);
                    };
                    answered.fetch_add(1, Ordering::Relaxed);
                    acked.push(ack);
                }
            }
        }
    }

    /// Sends one call, which was due at an instant.
    async fn send(&mut self, due: Instant) -> Result<Ack> {
        let number = self.next;
        self.next += 1;
        let body = (self.call.body)(number, since_start(due));
        let mut request = Request::builder()
            .method(self.call.method.clone())
            .uri(&self.call.path)
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
        let is_right = status == self.call.status;
        ensure!(
            is_right,
            "the server answered {status}: {}",
            String::from_utf8_lossy(&body)
        );
        let nanos = nanos(due.elapsed());
        Ok(Ack { number, nanos })
    }
}

/// Returns the nanoseconds from the start of the measurement to an instant.
pub fn since_start(at: Instant) -> u64 {
    nanos(at.saturating_duration_since(*START))
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
