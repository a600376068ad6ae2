//! Runs the jobs of a lane, and writes what they came to into the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use kanat_message_log::{Outcome, SettleOutcome};
use kanat_model::Timestamp;

use super::job::{Ended, Job};
use super::{InFlight, Pipeline};
use crate::delivery::{self, Attempt, Tools};
use crate::observed::Observer;
use crate::persist::persist;
use crate::plans::published::Answering;
use crate::plans::{Environment, Flow};

/// Why an attempt came to no end of its own.
enum Broken {
    /// Nobody waits for it any more.
    Late,
    /// Its flow was taken out of service.
    Removed,
    Panicked,
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
        if snapshot
            .flow(&job.runnable.flow.id)
            .is_some_and(|flow| flow.paused)
        {
            return Some(job.given_back(Timestamp::steady()));
        }
        let removed = job.runnable.removed.clone();
        if removed.is_cancelled() {
            // Whether the flow is deleted is told by the log, to whoever claims the message.
            return Some(job.given_back(Timestamp::steady()));
        }
        // The job may have waited, and its connector's secrets may have been replaced meanwhile.
        let environment = snapshot.environment(&job.runnable.flow.environment_id);
        let environment = Arc::clone(environment.unwrap_or(&job.runnable.environment));
        let span = job.work.begin_attempt(&job.runnable.flow.id);
        let hold = Arc::clone(&job.hold);
        let late = job.reply.as_ref().map(|reply| reply.late.clone());
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
                () = hold.lost().cancelled() => return None,
                () = removed.cancelled() => Err(Broken::Removed),
                () = late => Err(Broken::Late),
                attempt = attempt => attempt.map_err(|_| Broken::Panicked),
            }
        };
        let attempt = match attempt {
            Ok(Some(attempt)) => attempt,
            Ok(None) => return None,
            Err(Broken::Removed) => return Some(job.broken_off(Timestamp::now())),
            Err(Broken::Late) => delivery::late(&job.work),
            Err(Broken::Panicked) => {
                tracing::error!(
                    message.id = %job.work.id,
                    flow.id = %job.runnable.flow.id,
                    "a message broke its run",
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
        Some(job.ended(attempt, &self.backlog))
    }

    async fn attempt(&self, job: &mut Job, environment: &Environment) -> Option<Attempt> {
        let answering = job.reply.as_ref().map(|reply| reply.answering.as_ref());
        let tools = self.tools(&job.runnable.flow, environment, answering);
        delivery::attempt(&tools, Some(&job.lease), &mut job.work).await
    }

    /// What an attempt of a message of `flow` works with.
    pub(super) fn tools<'a>(
        &'a self,
        flow: &'a Flow,
        environment: &'a Environment,
        answering: Option<&'a Answering>,
    ) -> Tools<'a> {
        Tools {
            program: &flow.program,
            resources: environment,
            environment,
            scripts: environment,
            adapters: &self.adapters,
            client: &self.outbound,
            plans: &self.plans,
            bounds: &self.bounds,
            log: self.log.as_ref(),
            memory: &self.memory,
            agent: &self.agent,
            observer: Observer {
                observed: self.plans.observed(),
                environment: &environment.id,
            },
            answering,
        }
    }

    /// Writes an outcome until it is durable, or until the message belongs to another. The job's
    /// place in its lane is held meanwhile: a log that cannot write stops the lane, and loses
    /// nothing.
    pub(super) async fn settle(&self, ended: Ended) {
        let Ended {
            settlement,
            hold,
            slot,
            tally,
            told,
        } = ended;
        let writing = async {
            let written = persist(&settlement.lease.message_id, || {
                self.log.settle(&settlement)
            })
            .await;
            if written == SettleOutcome::Done {
                let failure = settlement.failure.as_ref();
                tally
                    .iter()
                    .for_each(|tally| tally.count(settlement.outcome, failure, settlement.at));
            }
        };
        tokio::select! {
            biased;
            () = writing => {}
            () = hold.lost().cancelled() => {}
        }
        drop(slot);
        if let Some((tell, answered)) = told {
            // Who waited may have gone away.
            drop(tell.send(answered));
        }
    }
}
