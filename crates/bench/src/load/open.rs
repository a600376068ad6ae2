//! The open loop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::{Call, Caller, Outcome};

/// How often, for how long, and over how many connections at most.
#[derive(Clone, Copy)]
pub struct Pace {
    pub per_second: u32,
    pub length: Duration,
    pub connections: usize,
}

/// Calls at fixed instants. One that finds no free connection is sent late, and its latency says
/// so.
pub async fn open(address: SocketAddr, call: &Call, pace: Pace, start: Instant) -> Result<Outcome> {
    let (due, dues) = mpsc::unbounded_channel();
    let dues = Arc::new(Mutex::new(dues));
    let mut tasks = JoinSet::new();
    for _ in 0..pace.connections {
        let mut caller = Caller::connect(address, call.clone(), start).await?;
        let dues = Arc::clone(&dues);
        tasks.spawn(async move {
            let mut acked = Vec::new();
            loop {
                let Some(due) = dues.lock().await.recv().await else {
                    return anyhow::Ok(acked);
                };
                acked.push(caller.send(due).await?);
            }
        });
    }
    let begun = Instant::now();
    // The runtime's clock ticks in milliseconds; a thread sleeps more exactly.
    let pacer = std::thread::spawn(move || pace.tick(begun, &due));
    let mut acked = Vec::new();
    while let Some(done) = tasks.join_next().await {
        acked.extend(done.context("a connection's task failed")??);
    }
    let elapsed = begun.elapsed();
    pacer
        .join()
        .map_err(|_| anyhow::anyhow!("the pacer failed"))?;
    Ok(Outcome::new(acked, elapsed))
}

impl Pace {
    fn tick(self, begun: Instant, due: &mpsc::UnboundedSender<Instant>) {
        let between = Duration::from_secs(1) / self.per_second.max(1);
        let mut next = begun + between;
        while next < begun + self.length {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if due.send(next).is_err() {
                return;
            }
            next += between;
        }
    }
}
