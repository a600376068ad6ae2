//! Calls that deliver nothing: they run in memory, and their records are written into the log after
//! the response, many in one write. A node that dies loses records of such calls, never a delivery.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kanat_message_log::{AttemptedMessage, Error, Placement};
use kanat_model::backoff::Backoff;
use kanat_net::budget::Reservation;
use kanat_telemetry::metrics::{Outcome, metrics};
use tokio::sync::{Mutex, mpsc};

use super::accept::message_and_work;
use super::tally::Tally;
use super::{Arrival, CallError, InFlight, Pipeline};
use crate::delivery::{self, CallOutcome};
use crate::plans::Runnable;
use crate::plans::published::ResponseMapping;

/// Records that wait for the log. Further calls wait for room.
const MAX_PENDING: usize = 4096;
/// Records of one write.
const MAX_BATCH: usize = 512;

/// Delays after failed writes.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(20),
    max: Duration::from_secs(1),
};

/// A call that has its response and is not in the log yet.
struct Record {
    message: Arc<AttemptedMessage>,
    tally: Tally,
    _bytes: Reservation,
    _in_flight: InFlight,
}

/// Queue of records for the log.
pub(super) struct WriteBehind {
    tx: mpsc::Sender<Record>,
    rx: Mutex<mpsc::Receiver<Record>>,
}

impl WriteBehind {
    pub fn new() -> Self {
        let (tx, rx) = mpsc::channel(MAX_PENDING);
        Self {
            tx,
            rx: Mutex::new(rx),
        }
    }
}

impl Pipeline {
    /// Returns whether a call runs entirely in memory: there is nothing to deliver, to wait for or
    /// to deduplicate.
    pub fn runs_in_memory(
        runnable: &Runnable,
        arrival: &Arrival,
        response_mapping: &ResponseMapping,
    ) -> bool {
        let plan = runnable.flow.plan();
        let program = &runnable.flow.program;
        let calls_nobody = plan.steps.is_empty() && plan.target.is_none();
        let waits = program.uses_adapters() || response_mapping.calls_adapters();
        calls_nobody && !waits && arrival.dedupe.is_empty() && arrival.ordering_key.is_none()
    }

    /// Runs a call for which [`Self::runs_in_memory`] is true.
    pub async fn run_in_memory(
        self: &Arc<Self>,
        runnable: &Runnable,
        arrival: Arrival,
        response_mapping: &ResponseMapping,
    ) -> Result<Option<CallOutcome>, CallError> {
        self.admits_calls(&runnable.flow)?;
        let place = self
            .write_behind
            .tx
            .reserve()
            .await
            .map_err(|_| CallError::Busy)?;
        let (message, mut work) = message_and_work(runnable, arrival, Placement::Queued);
        let bytes = self.memory.take(work.bytes()).ok_or(CallError::Busy)?;
        let in_flight = self.begin();
        let flow = &runnable.flow;
        let tools = self.tools(flow, &runnable.environment, Some(response_mapping));
        let attempt = AssertUnwindSafe(delivery::attempt(&tools, None, &mut work))
            .catch_unwind()
            .await;
        let mut attempt = match attempt {
            Ok(attempt) => attempt.unwrap_or_else(|| delivery::broken(&work)),
            Err(_) => {
                tracing::error!(
                    message.id = %work.id,
                    flow.id = %flow.id,
                    "panic while processing a message",
                );
                delivery::broken(&work)
            }
        };
        let outcome = attempt.call_outcome.take();
        flow.counts.count(Outcome::Accepted);
        let tally = Tally::new(&flow.counts, work.received_at);
        place.send(Record {
            message: Arc::new(attempt.with_message(message)),
            tally,
            _bytes: bytes,
            _in_flight: in_flight,
        });
        Ok(outcome)
    }

    /// Writes records as they come, until the pipeline has stopped.
    pub(super) async fn run_write_behind(&self) {
        let mut rx = self.write_behind.rx.lock().await;
        let mut records = Vec::with_capacity(MAX_BATCH);
        loop {
            let writing = async {
                rx.recv_many(&mut records, MAX_BATCH).await;
                self.write_records(&mut records).await;
            };
            tokio::select! {
                () = writing => {}
                () = self.stopped.cancelled() => break,
            }
        }
        let lost = records.len() + rx.len();
        if lost > 0 {
            tracing::warn!(
                records = lost,
                "records of calls that were answered are not in the log"
            );
        }
    }

    /// Retries until the log has taken all records. A record that the log refuses is dropped.
    async fn write_records(&self, records: &mut Vec<Record>) {
        let mut failures = 0;
        let mut batch_size = MAX_BATCH;
        while !records.is_empty() {
            let group = &records[..batch_size.min(records.len())];
            let messages = group
                .iter()
                .map(|record| Arc::clone(&record.message))
                .collect();
            let length = group.len();
            match self.log.append_attempted(messages).await {
                Ok(()) => {
                    for record in records.drain(..length) {
                        let AttemptedMessage {
                            outcome,
                            failure,
                            at,
                            ..
                        } = record.message.as_ref();
                        record.tally.count(*outcome, failure.as_ref(), *at);
                    }
                }
                Err(Error::Other(error)) if length == 1 => {
                    metrics().append_failures.inc();
                    tracing::error!(
                        %error,
                        message.id = %records[0].message.message.id,
                        "the record of a call is refused",
                    );
                    records.remove(0);
                }
                // One record is refused: bisection finds it.
                Err(Error::Other(_)) => batch_size = length.div_ceil(2),
                Err(error) => {
                    metrics().append_failures.inc();
                    tracing::warn!(
                        %error,
                        records = records.len(),
                        "records of calls cannot be written yet",
                    );
                    failures += 1;
                    tokio::time::sleep(RETRY.delay(failures)).await;
                }
            }
        }
    }
}
