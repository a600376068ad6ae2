//! Calls that leave nothing to be delivered: run from memory and answered, and written into the log behind the answer. What
//! a node that dies loses of these is their record, never a delivery.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kanat_message_log::{Appended, Lease, NewMessage, Place};
use kanat_telemetry::metrics::{Outcome, metrics};
use tokio::sync::OwnedSemaphorePermit;

use super::accept::stored;
use super::job::Ended;
use super::lease::Hold;
use super::tally::Tally;
use super::{Arrival, InFlight, NotBegun, Pipeline, Reservation};
use crate::delivery::{self, Answered, Answering, Attempt};
use crate::plans::Runnable;

/// Records that may wait for the log; then calls wait for room.
pub(super) const MOST: usize = 4096;

/// Waits between tries at a log that does not take a record: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What a record takes up until it is in the log.
struct Room {
    _place: OwnedSemaphorePermit,
    _bytes: Reservation,
    in_flight: InFlight,
}

impl Pipeline {
    /// Whether all of a call happens in memory: there is nothing to deliver, to wait for, or to tell from a repeat.
    pub fn runs_in_memory(runnable: &Runnable, arrival: &Arrival, answering: &Answering) -> bool {
        let (plan, program) = (runnable.flow.plan(), &runnable.flow.program);
        let calls_nobody = plan.steps.is_empty() && plan.target.is_none();
        let waits = program.uses_adapters() || answering.calls_adapters();
        calls_nobody && !waits && arrival.dedupe.is_empty() && arrival.ordering_key.is_none()
    }

    /// Runs a call of which [`Self::runs_in_memory`] holds.
    pub async fn run_in_memory(
        self: &Arc<Self>,
        runnable: &Runnable,
        arrival: Arrival,
        answering: &Answering,
    ) -> Result<Option<Answered>, NotBegun> {
        self.admits_calls(&runnable.flow)?;
        let place = Arc::clone(&self.behind).acquire_owned().await.map_err(|_| NotBegun::Busy)?;
        let (message, mut work) = stored(runnable, arrival, Place::Queued);
        let bytes = self.memory.take(work.bytes()).ok_or(NotBegun::Busy)?;
        let room = Room { _place: place, _bytes: bytes, in_flight: self.begin() };
        let flow = &runnable.flow;
        let tools = self.tools(flow, &runnable.environment, Some(answering));
        let attempt = AssertUnwindSafe(delivery::attempt(&tools, None, &mut work)).catch_unwind().await;
        let mut attempt = match attempt {
            Ok(attempt) => attempt.unwrap_or_else(|| delivery::broken(&work)),
            Err(_) => {
                tracing::error!(message.id = %work.id, flow.id = %flow.id, "a message broke its run");
                delivery::broken(&work)
            }
        };
        let answered = attempt.answered.take();
        let tally = Tally::new(&flow.counts, work.received_at);
        flow.counts.count(Outcome::Accepted);
        let this = Arc::clone(self);
        self.tasks.spawn(async move { this.write_behind(message, attempt, tally, room).await });
        Ok(answered)
    }

    async fn write_behind(&self, message: NewMessage, attempt: Attempt, tally: Tally, room: Room) {
        let written = async {
            if let Some((lease, hold)) = self.write_down(message).await {
                let settlement = attempt.settlement(lease);
                self.settle(Ended { settlement, hold, slot: None, tally: Some(tally), told: None }).await;
            }
        };
        tokio::select! {
            () = written => {}
            () = self.stopped.cancelled() => tracing::warn!("the record of a call that was answered is not in the log"),
        }
        drop(room.in_flight);
    }

    /// Appends a message until the log takes it.
    async fn write_down(&self, message: NewMessage) -> Option<(Lease, Arc<Hold>)> {
        let mut pause = RETRY.0;
        loop {
            if let Some(hold) = self.leases.current() {
                let place = Place::Leased(hold.owner().clone());
                match self.log.append(NewMessage { place, ..message.clone() }).await {
                    Ok(Appended::Leased(lease)) => return Some((lease, hold)),
                    Ok(Appended::Waiting | Appended::Duplicate(_)) => return None,
                    Err(error) => {
                        metrics().append_failures.inc();
                        tracing::warn!(%error, message.id = %message.id, "the record of a call cannot be written yet");
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY.1);
        }
    }
}
