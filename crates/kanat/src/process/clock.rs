//! The wall clock, which others set: a jump is logged and counted, and timers keep their distance.

use std::time::Duration;

use kanat_model::clock::{self, Jump};
use kanat_telemetry::metrics;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How often the wall clock is compared with the monotonic one.
const EVERY: Duration = Duration::from_secs(1);

/// Compares the clocks until the set is dropped.
pub fn watch() -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async {
        loop {
            if let Some(Jump { is_forward, by }) = clock::check() {
                let direction = if is_forward { "forward" } else { "back" };
                metrics().clock_jumps.inc();
                tracing::warn!(
                    direction,
                    seconds = by.as_secs(),
                    "the clock of this machine was set: retries, polls and leases keep their \
                     distance, schedules go by the new time",
                );
            }
            sleep(EVERY).await;
        }
    });
    tasks
}
