//! Runs the jobs of a lane, and writes what they came to into the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kanat_message_log::{Outcome, Settled};
use kanat_model::Timestamp;
use kanat_telemetry::metrics;

use super::job::{Ended, Job};
use super::{InFlight, Pipeline};
use crate::delivery::{self, Attempt};

/// Waits between tries to write an outcome: the first, and the longest.
const SETTLE_RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

impl Pipeline {
    /// Runs the job in a task of its own.
    pub(super) fn begin_run(self: &Arc<Self>, job: Box<Job>, in_flight: InFlight) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.enter(job).await;
            drop(in_flight);
        });
    }

    /// Runs the job now if its lane lets it, and then what queued up behind it; else queues it.
    async fn enter(self: &Arc<Self>, job: Box<Job>) {
        if self.is_draining() {
            return;
        }
        let lane = Arc::clone(job.slot.lane());
        let mut next = lane.enter(job);
        while let Some(job) = next {
            let ended = self.run(job).await;
            next = lane.next();
            match ended {
                // The lane goes on while the outcome is being written.
                Some(ended) if next.is_some() => {
                    let this = Arc::clone(self);
                    let in_flight = self.begin();
                    self.tasks.spawn(async move {
                        this.settle(ended).await;
                        drop(in_flight);
                    });
                }
                Some(ended) => self.settle(ended).await,
                None => {}
            }
        }
    }

    /// One attempt; `None` when the message is no longer this node's to work on.
    async fn run(&self, mut job: Box<Job>) -> Option<Ended> {
        if self.is_draining() || !job.hold.usable().await {
            return None;
        }
        let snapshot = self.plans.load();
        if snapshot.flow(&job.runnable.flow.id).is_some_and(|flow| flow.paused) {
            return Some(job.given_back(Timestamp::now()));
        }
        // The job may have waited, and its connector's secrets may have been replaced meanwhile.
        let environment = snapshot.environment(&job.runnable.flow.environment_id).unwrap_or(&job.runnable.environment);
        let span = job.work.begin_attempt(&job.runnable.flow.id);
        let attempt = {
            let attempt = AssertUnwindSafe(self.attempt(&job, environment)).catch_unwind();
            tokio::select! {
                biased;
                () = job.hold.lost().cancelled() => return None,
                attempt = attempt => attempt,
            }
        };
        let attempt = attempt.unwrap_or_else(|_| {
            tracing::error!(message.id = %job.work.id, flow.id = %job.runnable.flow.id, "a message broke its run");
            delivery::broken(&job.work, &job.runnable.flow.program)
        });
        if let Some(span) = span {
            span.end(attempt.failure.as_ref().map(|failure| failure.kind.as_str().to_owned()));
        }
        if attempt.outcome == Outcome::DeadLetter {
            let (message, flow) = (&job.work.id, &job.runnable.flow.id);
            let kind = attempt.failure.as_ref().map(|failure| failure.kind.as_str());
            tracing::warn!(message.id = %message, flow.id = %flow, error.kind = kind, "a message became a dead letter");
        }
        Some(job.ended(attempt))
    }

    async fn attempt(&self, job: &Job, environment: &crate::plans::Environment) -> Attempt {
        let program = &job.runnable.flow.program;
        match delivery::prepare(&job.work, program, environment, &self.agent) {
            Ok(prepared) => delivery::send(prepared, &job.work, program, &self.outbound).await,
            Err(ended) => *ended,
        }
    }

    /// Writes an outcome until it is durable, or until the message belongs to another. The job's place in its lane is
    /// held meanwhile: a log that cannot write stops the lane, and loses nothing.
    pub(super) async fn settle(&self, ended: Ended) {
        let Ended { settlement, hold, slot, tally } = ended;
        let writing = async {
            let mut pause = SETTLE_RETRY.0;
            loop {
                match self.log.settle(&settlement).await {
                    Ok(Settled::Done) => return tally.iter().for_each(|tally| tally.count(&settlement)),
                    Ok(Settled::Fenced) => {
                        metrics().settles_fenced.inc();
                        tracing::warn!(message.id = %settlement.lease.message_id, "an outcome came too late: the message was taken over");
                        return;
                    }
                    Err(error) => {
                        metrics().settle_failures.inc();
                        tracing::warn!(%error, message.id = %settlement.lease.message_id, "an outcome cannot be written yet");
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(SETTLE_RETRY.1);
            }
        };
        tokio::select! {
            biased;
            () = writing => {}
            () = hold.lost().cancelled() => {}
        }
        drop(slot);
    }
}
