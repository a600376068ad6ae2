//! The target: takes deliveries, and notes which orders came, how long each was on its way, and
//! which came twice.

use std::collections::HashSet;
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

use crate::load::{self, Acked};
use crate::order;

/// Nothing more is awaited when nothing has come for so long.
const SILENCE: Duration = Duration::from_secs(15);

/// A target on a free port of loopback; it stops when dropped.
pub struct Target {
    pub address: SocketAddr,
    /// Instants in the orders count from here.
    pub start: Instant,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    _task: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct Arrival {
    number: u64,
    /// Since the order was sent, or due.
    nanos: u64,
    at: Instant,
}

/// What came of the orders that were acked.
pub struct Arrived {
    /// Times from sending to first arrival, sorted nanoseconds.
    pub latencies: Vec<u64>,
    pub lost: u64,
    pub doubles: u64,
    /// When the last one came.
    pub last: Option<Instant>,
}

impl Target {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("cannot listen")?;
        let address = listener.local_addr()?;
        let start = Instant::now();
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&arrivals);
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
        task.spawn(server::serve(
            listener,
            service,
            Options::default(),
            CancellationToken::new(),
        ));
        Ok(Self {
            address,
            start,
            arrivals,
            _task: task,
        })
    }

    /// Waits until each of these has arrived, or nothing arrives any more; then forgets all that
    /// came.
    pub async fn collect(&self, acked: &[Acked]) -> Arrived {
        let mut former = 0;
        let mut still_since = Instant::now();
        loop {
            let count = self.lock().len();
            let silent = still_since.elapsed() > SILENCE;
            if count >= acked.len() || silent {
                let arrived = Arrived::of(&self.lock(), acked);
                if arrived.lost == 0 || silent {
                    self.lock().clear();
                    return arrived;
                }
            }
            if count != former {
                (former, still_since) = (count, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arrival>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrived {
    fn of(arrivals: &[Arrival], acked: &[Acked]) -> Self {
        let mut awaited: HashSet<u64> = acked.iter().map(|acked| acked.number).collect();
        let mut seen = HashSet::with_capacity(arrivals.len());
        let mut arrived = Self {
            latencies: Vec::with_capacity(acked.len()),
            lost: 0,
            doubles: 0,
            last: None,
        };
        for arrival in arrivals {
            if !seen.insert(arrival.number) {
                arrived.doubles += 1;
            } else if awaited.remove(&arrival.number) {
                arrived.latencies.push(arrival.nanos);
                arrived.last = Some(arrival.at);
            }
        }
        arrived.latencies.sort_unstable();
        arrived.lost = awaited.len() as u64;
        arrived
    }
}

fn note(arrivals: &Mutex<Vec<Arrival>>, body: &[u8], start: Instant) {
    let at = Instant::now();
    let (Some(number), Some(sent_at)) = (order::number(body), order::sent_at(body)) else {
        return;
    };
    let nanos = load::nanos(at - start).saturating_sub(sent_at);
    arrivals
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Arrival { number, nanos, at });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_counts_once_and_what_did_not_come_is_missed() {
        let arrival = |number| Arrival {
            number,
            nanos: number,
            at: Instant::now(),
        };
        let acked = |number| Acked { number, nanos: 0 };
        let arrived = Arrived::of(
            &[arrival(3), arrival(1), arrival(3), arrival(9)],
            &[acked(1), acked(2), acked(3)],
        );
        assert_eq!(arrived.lost, 1);
        assert_eq!(arrived.doubles, 1);
        assert_eq!(arrived.latencies, vec![1, 3]);
    }
}
