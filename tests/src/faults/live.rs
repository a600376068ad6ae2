//! Faults of a service that goes on, or is started again, with what it has.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::tally::Tally;
use super::workload::{Mix, Workload};
use super::{Outcome, Run};
use crate::Rest;
use crate::random::Random;

/// Between two faults.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_millis(1_500);

/// A service under load.
pub(super) trait Service {
    /// Its management API.
    fn api(&self) -> &Rest;

    /// Addresses that take messages.
    fn addresses(&self) -> Vec<String>;

    /// Causes the fault and ends it. Returns when it ended, which is when recovery begins.
    async fn disturb(&mut self, random: &mut Random) -> Result<Instant>;
}

/// Disturbs a service as long as the run lasts, then waits until all has ended and counts.
pub(super) async fn run(
    run: &mut Run,
    service: &mut impl Service,
    workload: &Workload,
) -> Result<Outcome> {
    let mut tally = Tally::default();
    let addresses = service.addresses();
    let senders = workload.send(service.api(), &addresses, Mix::Every, || 0);
    let begun = Instant::now();
    while begun.elapsed() < run.extent.time {
        tokio::time::sleep(run.random.pause(MIN_PAUSE, MAX_PAUSE)).await;
        let ended = service.disturb(&mut run.random).await?;
        senders.acked_after(ended, &addresses).await?;
        tally.recovery.push(ended.elapsed());
        tally.rounds += 1;
    }
    let acks = senders.finish().await?;
    let messages = workload.ended(service.api()).await;
    let arrivals = workload.arrivals(0);
    let delivered: HashSet<_> = arrivals.iter().map(|arrival| arrival.id.clone()).collect();
    tally.count(&acks, &messages, &arrivals, &delivered);
    Ok(Outcome::Ran(tally))
}
