//! Runs the jobs of a lane and writes their outcomes into the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use kanat_message_log::{LeasedWriteOutcome, Outcome};
use kanat_model::Timestamp;

use super::job::{FinishedJob, Job};
use super::{InFlight, Pipeline};
use crate::delivery::{self, Attempt, Tools};
use crate::observed::Observer;
use crate::persist::persist;
use crate::plans::published::ResponseMapping;
use crate::plans::{CompiledFlow, Environment};

/// Reason why an attempt was aborted.
enum Abort {
    /// The deadline of the caller has passed.
    Late,
    /// The flow was taken out of service.
    Removed,
    Panic,
}

impl Pipeline {
    /// Runs the job in a task of its own.
    pub(super) fn begin_run(self: &Arc<Self>, job: Box<Job>, in_flight: InFlight) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.enter(job).await;
            drop(in_flight);
        });
    }

    /// Runs the job if its lane allows it, then the jobs queued after it; otherwise queues the job.
    async fn enter(self: &Arc<Self>, job: Box<Job>) {
        if self.is_draining() {
            return;
        }
        let lane = Arc::clone(job.slot.lane());
        let mut next = lane.enter(job);
        while let Some(job) = next {
            let finished = self.run(job).await;
            next = lane.next();
            match finished {
                // The lane continues while the outcome is being written.
                Some(finished) if next.is_some() => {
                    let this = Arc::clone(self);
                    let in_flight = self.begin();
                    self.tasks.spawn(async move {
                        this.settle(finished).await;
                        drop(in_flight);
                    });
                }
                Some(finished) => self.settle(finished).await,
                None => {}
            }
        }
    }

    /// Makes one attempt. Returns `None` when this node may no longer process the message.
    async fn run(&self, mut job: Box<Job>) -> Option<FinishedJob> {
        if self.is_draining() || !job.node_lease.wait_until_valid().await {
            return None;
        }
        let snapshot = self.plans.load();
        if snapshot
            .flow(&job.runnable.flow.id)
            .is_some_and(|flow| flow.paused)
        {
            return Some(job.release(Timestamp::steady()));
        }
        let removed = job.runnable.removed.clone();
        if removed.is_cancelled() {
            // The log knows whether the flow is deleted: the next claim finds out.
            return Some(job.release(Timestamp::steady()));
        }
        // The job may have waited while the secrets of its connector were replaced.
        let environment = snapshot.environment(&job.runnable.flow.environment_id);
        let environment = Arc::clone(environment.unwrap_or(&job.runnable.environment));
        let span = job.work.begin_attempt(&job.runnable.flow.id);
        let node_lease = Arc::clone(&job.node_lease);
        let late = job.reply.as_ref().map(|reply| reply.deadline.clone());
        let late = async move {
            match late {
                Some(late) => late.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let attempt = {
            let attempt = AssertUnwindSafe(self.attempt(&mut job, &environment)).catch_unwind();
            tokio::select! {
                biased;
                () = node_lease.lost().cancelled() => return None,
                () = removed.cancelled() => Err(Abort::Removed),
                () = late => Err(Abort::Late),
                attempt = attempt => attempt.map_err(|_| Abort::Panic),
            }
        };
        let attempt = match attempt {
            Ok(Some(attempt)) => attempt,
            Ok(None) => return None,
            Err(Abort::Removed) => return Some(job.interrupt(Timestamp::now())),
            Err(Abort::Late) => delivery::late(&job.work),
            Err(Abort::Panic) => {
                tracing::error!(
                    message.id = %job.work.id,
                    flow.id = %job.runnable.flow.id,
                    "panic while processing a message",
                );
                delivery::broken(&job.work)
            }
        };
        if let Some(span) = span {
            span.end(
                attempt
                    .failure
                    .as_ref()
                    .map(|failure| failure.kind.as_str().to_owned()),
            );
        }
        if attempt.outcome == Outcome::DeadLetter {
            let message = &job.work.id;
            let flow = &job.runnable.flow.id;
            let kind = attempt
                .failure
                .as_ref()
                .map(|failure| failure.kind.as_str());
            tracing::warn!(
                message.id = %message,
                flow.id = %flow,
                error.kind = kind,
                "a message became a dead letter",
            );
        }
        Some(job.finish(attempt, &self.backlog))
    }

    async fn attempt(&self, job: &mut Job, environment: &Environment) -> Option<Attempt> {
        let response_mapping = job
            .reply
            .as_ref()
            .map(|reply| reply.response_mapping.as_ref());
        let tools = self.tools(&job.runnable.flow, environment, response_mapping);
        delivery::attempt(&tools, Some(&job.lease), &mut job.work).await
    }

    /// Returns the resources of an attempt of a message of `flow`.
    pub(super) fn tools<'a>(
        &'a self,
        flow: &'a CompiledFlow,
        environment: &'a Environment,
        response_mapping: Option<&'a ResponseMapping>,
    ) -> Tools<'a> {
        Tools {
            program: &flow.program,
            resources: environment,
            environment,
            scripts: environment,
            adapters: &self.adapters,
            client: &self.outbound,
            plans: &self.plans,
            connectors: &self.connectors,
            log: self.log.as_ref(),
            memory: &self.memory,
            agent: &self.agent,
            observer: Observer {
                observed: self.plans.observed(),
                environment: &environment.id,
            },
            response_mapping,
        }
    }

    /// Retries the write of an outcome until it is durable or the lease is lost. The job keeps its
    /// slot in the lane meanwhile: a log that cannot write stops the lane, and no message is lost.
    pub(super) async fn settle(&self, finished: FinishedJob) {
        let FinishedJob {
            settlement,
            node_lease,
            slot,
            tally,
            reply,
        } = finished;
        let writing = async {
            let written = persist(&settlement.lease.message_id, || {
                self.log.settle(&settlement)
            })
            .await;
            if written == LeasedWriteOutcome::Done {
                let failure = settlement.failure.as_ref();
                tally
                    .iter()
                    .for_each(|tally| tally.count(settlement.outcome, failure, settlement.at));
            }
        };
        tokio::select! {
            biased;
            () = writing => {}
            () = node_lease.lost().cancelled() => {}
        }
        drop(slot);
        if let Some((reply_tx, outcome)) = reply {
            // The caller may have gone away.
            drop(reply_tx.send(outcome));
        }
    }
}
