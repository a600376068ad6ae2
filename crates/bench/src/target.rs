//! The target: takes deliveries, and notes how long each was on its way.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::BodyExt;
use hyper::{Request, Response};
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{load, order};

/// A target on a free port of loopback; it stops when dropped.
pub struct Target {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _task: JoinSet<()>,
}

/// What has arrived so far.
#[derive(Default)]
pub struct Seen {
    /// Times from sending to arrival, in nanoseconds.
    pub latencies: Vec<u64>,
    pub last: Option<Instant>,
}

impl Target {
    /// Instants in the orders count from `start`.
    pub async fn start(start: Instant) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen")?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let notes = Arc::clone(&seen);
        let service = tower::service_fn(move |request: Request<Inbound>| {
            let notes = Arc::clone(&notes);
            async move {
                if let Ok(body) = request.into_body().collect().await {
                    note(&notes, &body.to_bytes(), start);
                }
                Ok::<_, Infallible>(Response::new(kanat_net::body::full("{}")))
            }
        });
        let mut task = JoinSet::new();
        task.spawn(server::serve(listener, service, Options::default(), CancellationToken::new()));
        Ok(Self { address, seen, _task: task })
    }

    /// Waits until `count` deliveries have arrived, or none has for ten seconds.
    pub async fn wait_for(&self, count: u64) -> Seen {
        let mut former = 0;
        let mut still_since = Instant::now();
        loop {
            let arrived = {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                let arrived = seen.latencies.len();
                if arrived as u64 >= count || still_since.elapsed() > Duration::from_secs(10) {
                    return std::mem::take(&mut *seen);
                }
                arrived
            };
            if arrived != former {
                (former, still_since) = (arrived, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn note(seen: &Mutex<Seen>, body: &[u8], start: Instant) {
    let now = Instant::now();
    let Some(sent_at) = order::sent_at(body) else { return };
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.latencies.push(load::nanos(now - start).saturating_sub(sent_at));
    seen.last = Some(now);
}
