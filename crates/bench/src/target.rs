//! The target: takes deliveries, and records which orders arrived, how long each took, and which
//! arrived twice.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use http_body_util::BodyExt;
use hyper::{Request, Response};
use kanat_net::Inbound;
use kanat_net::server::{self, Options};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::load::{Ack, since_start};
use crate::order;

/// Time without an arrival after which the missing orders count as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// A target on a free port of loopback; it stops when dropped.
pub struct Target {
    pub address: SocketAddr,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    _task: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct Arrival {
    number: u64,
    /// Nanoseconds since the order was sent, or due.
    nanos: u64,
    at: Instant,
}

/// Arrivals of the orders that were acked.
pub struct Deliveries {
    /// Times from sending to first arrival, sorted nanoseconds.
    pub latencies: Vec<u64>,
    pub lost: u64,
    pub doubles: u64,
    /// Instant of the last arrival.
    pub last: Option<Instant>,
}

impl Target {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let arrivals = Arc::<Mutex<Vec<Arrival>>>::default();
        let recorded = Arc::clone(&arrivals);
        let service = tower::service_fn(move |request: Request<Inbound>| {
            let recorded = Arc::clone(&recorded);
            async move {
                if let Ok(body) = request.into_body().collect().await {
                    lock(&recorded).extend(Arrival::of(&body.to_bytes()));
                }
                Ok::<_, Infallible>(Response::new(kanat_net::body::full("{}")))
            }
        });
        let options = Options::default();
        let mut task = JoinSet::new();
        task.spawn(server::serve(
            listener,
            service,
            options,
            CancellationToken::new(),
        ));
        Ok(Self {
            address,
            arrivals,
            _task: task,
        })
    }

    /// Waits until each of these has arrived, or nothing arrives any more; then forgets all
    /// arrivals.
    pub async fn collect(&self, acked: &[Ack]) -> Deliveries {
        let mut former = 0;
        let mut last_change = Instant::now();
        loop {
            let count = lock(&self.arrivals).len();
            let is_idle = last_change.elapsed() > IDLE_TIMEOUT;
            if count >= acked.len() || is_idle {
                let deliveries = Deliveries::of(&lock(&self.arrivals), acked);
                if deliveries.lost == 0 || is_idle {
                    lock(&self.arrivals).clear();
                    return deliveries;
                }
            }
            if count != former {
                former = count;
                last_change = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn lock(arrivals: &Mutex<Vec<Arrival>>) -> MutexGuard<'_, Vec<Arrival>> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arrival {
    /// Reads the number and the instant of a delivered order.
    fn of(body: &[u8]) -> Option<Self> {
        let at = Instant::now();
        let number = order::number(body)?;
        let nanos = since_start(at).saturating_sub(order::sent_at(body)?);
        Some(Self { number, nanos, at })
    }
}

impl Deliveries {
    fn of(arrivals: &[Arrival], acked: &[Ack]) -> Self {
        let mut missing: HashSet<u64> = acked.iter().map(|ack| ack.number).collect();
        let mut seen = HashSet::with_capacity(arrivals.len());
        let mut deliveries = Self {
            latencies: Vec::with_capacity(acked.len()),
            lost: 0,
            doubles: 0,
            last: None,
        };
        for arrival in arrivals {
            if !seen.insert(arrival.number) {
                deliveries.doubles += 1;
            } else if missing.remove(&arrival.number) {
                deliveries.latencies.push(arrival.nanos);
                deliveries.last = Some(arrival.at);
            }
        }
        deliveries.latencies.sort_unstable();
        deliveries.lost = missing.len() as u64;
        deliveries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_counts_once_and_missing_orders_are_lost() {
        let arrival = |number| Arrival {
            number,
            nanos: number,
            at: Instant::now(),
        };
        let ack = |number| Ack { number, nanos: 0 };
        let deliveries = Deliveries::of(
            &[arrival(3), arrival(1), arrival(3), arrival(9)],
            &[ack(1), ack(2), ack(3)],
        );
        assert_eq!(deliveries.lost, 1);
        assert_eq!(deliveries.doubles, 1);
        assert_eq!(deliveries.latencies, vec![1, 3]);
    }
}
