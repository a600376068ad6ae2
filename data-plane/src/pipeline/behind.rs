//! Calls that leave nothing to be delivered: run from memory and answered, and written into the log
//! behind the answer, many in one write. What a node that dies loses of these is their record,
//! never a delivery.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kanat_message_log::{CompletedMessage, Error, Placement};
use kanat_net::budget::Reservation;
use kanat_telemetry::metrics::{Outcome, metrics};
use tokio::sync::{Mutex, mpsc};

use super::accept::stored;
use super::tally::Tally;
use super::{Arrival, InFlight, NotBegun, Pipeline};
use crate::delivery::{self, Answered};
use crate::plans::Runnable;
use crate::plans::published::Answering;

/// Records that may wait for the log; then calls wait for room.
const MOST: usize = 4096;
/// Records of one write.
const GROUP: usize = 512;

/// Waits between tries at a log that does not take records: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A call that was answered, until it is in the log.
struct Record {
    completed: Arc<CompletedMessage>,
    tally: Tally,
    _bytes: Reservation,
    _in_flight: InFlight,
}

/// The way of records to the log.
pub(super) struct Behind {
    way: mpsc::Sender<Record>,
    end: Mutex<mpsc::Receiver<Record>>,
}

impl Behind {
    pub fn new() -> Self {
        let (way, end) = mpsc::channel(MOST);
        Self {
            way,
            end: Mutex::new(end),
        }
    }
}

impl Pipeline {
    /// Whether all of a call happens in memory: there is nothing to deliver, to wait for, or to
    /// tell from a repeat.
    pub fn runs_in_memory(runnable: &Runnable, arrival: &Arrival, answering: &Answering) -> bool {
        let plan = runnable.flow.plan();
        let program = &runnable.flow.program;
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
        let place = self
            .behind
            .way
            .reserve()
            .await
            .map_err(|_| NotBegun::Busy)?;
        let (message, mut work) = stored(runnable, arrival, Placement::Queued);
        let bytes = self.memory.take(work.bytes()).ok_or(NotBegun::Busy)?;
        let in_flight = self.begin();
        let flow = &runnable.flow;
        let tools = self.tools(flow, &runnable.environment, Some(answering));
        let attempt = AssertUnwindSafe(delivery::attempt(&tools, None, &mut work))
            .catch_unwind()
            .await;
        let mut attempt = match attempt {
            Ok(attempt) => attempt.unwrap_or_else(|| delivery::broken(&work)),
            Err(_) => {
                tracing::error!(
                    message.id = %work.id,
                    flow.id = %flow.id,
                    "a message broke its run",
                );
                delivery::broken(&work)
            }
        };
        let answered = attempt.answered.take();
        flow.counts.count(Outcome::Accepted);
        let tally = Tally::new(&flow.counts, work.received_at);
        place.send(Record {
            completed: Arc::new(attempt.completed(message)),
            tally,
            _bytes: bytes,
            _in_flight: in_flight,
        });
        Ok(answered)
    }

    /// Writes records as they come, until nothing goes on any more.
    pub(super) async fn write_behind(&self) {
        let mut end = self.behind.end.lock().await;
        let mut records = Vec::with_capacity(GROUP);
        loop {
            let writing = async {
                end.recv_many(&mut records, GROUP).await;
                self.write_down(&mut records).await;
            };
            tokio::select! {
                () = writing => {}
                () = self.stopped.cancelled() => break,
            }
        }
        let lost = records.len() + end.len();
        if lost > 0 {
            tracing::warn!(
                records = lost,
                "records of calls that were answered are not in the log"
            );
        }
    }

    /// Writes all of them, and tries again until the log takes them; one that it never will is left
    /// out.
    async fn write_down(&self, records: &mut Vec<Record>) {
        let mut pause = RETRY.0;
        let mut most = GROUP;
        while !records.is_empty() {
            let group = &records[..most.min(records.len())];
            let messages = group
                .iter()
                .map(|record| Arc::clone(&record.completed))
                .collect();
            let length = group.len();
            match self.log.append_completed(messages).await {
                Ok(()) => {
                    for record in records.drain(..length) {
                        let CompletedMessage {
                            outcome,
                            failure,
                            at,
                            ..
                        } = record.completed.as_ref();
                        record.tally.count(*outcome, failure.as_ref(), *at);
                    }
                }
                Err(Error::Other(error)) if length == 1 => {
                    metrics().append_failures.inc();
                    tracing::error!(
                        %error,
                        message.id = %records[0].completed.message.id,
                        "the record of a call is refused",
                    );
                    records.remove(0);
                }
                // One of them is refused: it is found by halves.
                Err(Error::Other(_)) => most = length.div_ceil(2),
                Err(error) => {
                    metrics().append_failures.inc();
                    tracing::warn!(
                        %error,
                        records = records.len(),
                        "records of calls cannot be written yet",
                    );
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY.1);
                }
            }
        }
    }
}
