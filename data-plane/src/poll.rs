//! Polls: requests the endpoints of flows repeatedly and appends the records to the log as
//! messages, which any node then processes. The holder of a poll and its state are in the log too:
//! another node continues where a dead one stopped. This module knows neither lanes nor targets.

mod answer;
mod cycle;
mod evidence;
mod find;
mod lease;
mod link;
mod page;
mod place;
mod record_buffer;
mod records;
mod repeat;
mod request;
mod schedule;
mod state;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kanat_engine::Resources;
use kanat_flow::schedule::{CronExpression, timezone};
use kanat_message_log::{Error, MessageLog, PollClaim, PollClaimOutcome, PollCycleEnd};
use kanat_model::Timestamp;
use kanat_net::outbound;
use kanat_proto::plan::v1::{Poll, trigger::Kind};
use kanat_telemetry::metrics;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::backlog::Backlog;
use crate::connector::Connectors;
use crate::observed::Observer;
use crate::pipeline::Leases;
use crate::plans::{CompiledFlow, DeployedFlow, Plans, Runnable, Snapshot, versions};
use cycle::{Cycle, Halt, Outcome};
use lease::PollLease;
use place::{Place, Places, Source};
use records::RECORD_RETENTION;
use request::Requests;
use schedule::{PollResult, PollSchedule};
use state::{Progress, State};

#[cfg(feature = "fuzz")]
pub(crate) use self::{find::found, link::next as link_next};

/// Shortest delay before a poll that could not run, or that another node holds, is tried again.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(200);

/// Longest delay before a poll is tried again after an error of the log, or while another node
/// holds it.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Shared resources of the polls of a node.
pub(crate) struct Poller {
    pub log: Arc<dyn MessageLog>,
    pub plans: Plans,
    pub outbound: outbound::Client,
    /// Limits of the connectors, which polls share with all other calls.
    pub connectors: Arc<Connectors>,
    /// Backlog of the log. Polls pause while it is at its bound.
    pub backlog: Arc<Backlog>,
    /// Leases of the node. A poll is held under the owner of the current one, so that the node has
    /// it at once when it is started again.
    pub leases: Arc<Leases>,
    /// Time after which another node may take over a poll that its holder has not renewed.
    pub lease: Duration,
    /// Directory for the records of long pages.
    pub spill: PathBuf,
    /// Version of the build, for `User-Agent`.
    pub build: String,
}

impl Poller {
    /// Polls until `stop`. Cycles in progress are then given back for another node to continue.
    pub async fn run(self, stop: CancellationToken) {
        let poller = Arc::new(self);
        let places = Places::new();
        let mut snapshot = Arc::new(Snapshot::default());
        let mut schedule = PollSchedule::default();
        let mut running = JoinSet::new();
        let mut replaced = poller.plans.subscribe();
        while !stop.is_cancelled() {
            // Marked as seen before the read, so that no later change is missed.
            replaced.borrow_and_update();
            let current = poller.plans.load();
            if !Arc::ptr_eq(&current, &snapshot) {
                schedule.replace(polled(&current), Timestamp::steady());
                snapshot = current;
            }
            let now = Timestamp::steady();
            while let Some(flow) = schedule.next_due(now) {
                let poller = Arc::clone(&poller);
                let places = Arc::clone(&places);
                let stop = stop.clone();
                running.spawn(async move {
                    let next_at = match flow.compiled().map(|flow| Source::of(&flow)) {
                        Ok(source) => tokio::select! {
                            place = Place::take(&places, source) => {
                                poller.try_poll(&flow, place, &stop).await
                            }
                            () = stop.cancelled() => Timestamp::steady(),
                        },
                        Err(error) => cannot_run(&flow, &error),
                    };
                    PollResult {
                        flow_id: flow.id.clone(),
                        version: flow.version,
                        next_at,
                    }
                });
            }
            let pause = pause(schedule.first(), Timestamp::steady());
            tokio::select! {
                Some(ended) = running.join_next() => match ended {
                    Ok(result) => schedule.complete(result, Timestamp::steady()),
                    Err(error) => tracing::error!(%error, "a poll broke off"),
                },
                Ok(()) = replaced.changed() => {}
                () = sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Polls for the flow if it is due and no other node holds it. Returns the time of the next
    /// try.
    async fn try_poll(
        &self,
        flow: &DeployedFlow,
        place: Place,
        stop: &CancellationToken,
    ) -> Timestamp {
        let owner = tokio::select! {
            owner = self.leases.owner() => owner,
            () = stop.cancelled() => return Timestamp::steady(),
        };
        let now = Timestamp::steady();
        // Another version may be deployed since the poll waited for its place.
        let snapshot = self.plans.load();
        let as_deployed =
            |deployed: &&Arc<DeployedFlow>| deployed.version == flow.version && !deployed.paused;
        let Some(flow) = snapshot.flow(&flow.id).filter(as_deployed) else {
            return now.after(MIN_RETRY_DELAY);
        };
        let runnable = match snapshot.runnable(flow) {
            Ok(Some(runnable)) => runnable,
            Ok(None) => return now.after(MIN_RETRY_DELAY),
            Err(error) => return cannot_run(flow, &error),
        };
        let held_until = now.after(self.lease);
        let claim = PollClaim {
            flow_id: flow.id.clone(),
            version: flow.version,
            owner: owner.clone(),
            now,
            held_until,
        };
        match self.log.claim_poll(&claim).await {
            Ok(PollClaimOutcome::Later(at)) => at
                .min(now.after(MAX_RETRY_DELAY))
                .max(now.after(MIN_RETRY_DELAY)),
            Ok(PollClaimOutcome::Taken { token, state }) => {
                let lease = PollLease {
                    flow: Arc::clone(flow),
                    owner,
                    token,
                    ttl: self.lease,
                };
                match self
                    .poll(&runnable, &lease, State::read(&state), place, stop)
                    .await
                {
                    Ok(due) => due,
                    Err(error) => {
                        tracing::warn!(
                            flow.id = %flow.id,
                            %error,
                            "what a poll came to cannot be written down",
                        );
                        Timestamp::steady().after(MAX_RETRY_DELAY)
                    }
                }
            }
            Err(error) => {
                tracing::warn!(flow.id = %flow.id, %error, "cannot see whether a poll is due");
                now.after(MAX_RETRY_DELAY)
            }
        }
    }

    /// Runs a cycle, or continues one, under a lease. Returns the time of the next cycle.
    async fn poll(
        &self,
        runnable: &Runnable,
        lease: &PollLease,
        state: State,
        place: Place,
        stop: &CancellationToken,
    ) -> Result<Timestamp, Error> {
        let Some(poll) = poll_of(&runnable.flow) else {
            return Ok(Timestamp::steady().after(MAX_RETRY_DELAY));
        };
        let log = self.log.as_ref();
        let now = Timestamp::now();
        let resumed = state
            .progress
            .clone()
            .filter(|progress| progress.version == lease.flow.version);
        let mut progress = match resumed {
            Some(progress) => progress,
            // A flow with a schedule does not poll at its deploy.
            None if poll.schedule.is_some() && state.scheduled_for != Some(lease.flow.version) => {
                let due = due(poll, now, now, Timestamp::steady());
                let state = State {
                    scheduled_for: Some(lease.flow.version),
                    progress: None,
                    ..state
                };
                return lease.give_back(log, due, Some(&state), None).await;
            }
            None => Progress::first(now, lease.flow.version),
        };
        let began_at = *progress.cycle_began_at.get_or_insert(now);
        let left = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = runnable.removed.cancelled() => {}
            }
        };
        let outcome = tokio::select! {
            outcome = self.cycle(runnable, poll, lease, &state, progress, place) => outcome,
            () = lease.keep_on(log) => return Ok(Timestamp::steady().after(MAX_RETRY_DELAY)),
            () = left => {
                // Another node continues at once from the page that is not done, if it has the
                // flow.
                return lease.give_back(log, Timestamp::steady(), None, None).await;
            }
        };
        let ended = Timestamp::now();
        let steady = Timestamp::steady();
        let counts = metrics().flows.of(lease.flow.id.as_str());
        let mut next = due(poll, began_at, ended, steady).max(steady);
        let (state, error) = match outcome {
            Ok(Outcome {
                state,
                taken,
                complaint,
            }) => {
                metrics().poll_messages.inc_by(taken as u64);
                if let Some(complaint) = &complaint {
                    tracing::warn!(flow.id = %lease.flow.id, error = %complaint, "a poll failed");
                    counts.poll_failed();
                } else {
                    tracing::debug!(flow.id = %lease.flow.id, messages = taken, "polled");
                    counts.poll_succeeded();
                }
                (state, complaint)
            }
            // Any node continues from the page that is not done.
            Err(Halt::Waits { until }) => return lease.give_back(log, until, None, None).await,
            Err(Halt::Failed {
                message,
                not_before,
            }) => {
                tracing::warn!(flow.id = %lease.flow.id, error = %message, "a poll failed");
                counts.poll_failed();
                next = next.max(not_before.unwrap_or(next));
                (
                    State {
                        progress: None,
                        ..state
                    },
                    Some(message),
                )
            }
        };
        lease
            .give_back(
                log,
                next,
                Some(&state),
                Some(PollCycleEnd { at: ended, error }),
            )
            .await
    }

    async fn cycle(
        &self,
        runnable: &Runnable,
        poll: &Poll,
        lease: &PollLease,
        state: &State,
        mut progress: Progress,
        place: Place,
    ) -> Result<Outcome, Halt> {
        let agent = HeaderValue::from_str(&format!("kanat/{}", self.build));
        let agent = agent.unwrap_or(HeaderValue::from_static("kanat"));
        let name = &runnable.flow.plan().source_instance;
        let instance = runnable.environment.instance(name);
        if instance.is_none() && !name.is_empty() {
            return Err(
                format!("connector instance {name:?} does not exist in this environment").into(),
            );
        }
        let variables = runnable.environment.variables();
        let requests =
            Requests::prepare(poll, instance, variables, state, &agent, progress.began_at)?;
        if progress.pages == 0 {
            progress.next = requests.first();
        }
        let log = self.log.as_ref();
        let observer = Observer {
            observed: self.plans.observed(),
            environment: &runnable.flow.environment_id,
        };
        let cycle = Cycle {
            poller: self,
            runnable,
            instance,
            poll,
            lease,
            requests,
            observer,
        };
        let done = cycle.run(state, progress, place).await;
        if let (Ok(_), Some(instance)) = (&done, instance) {
            observer.polled(instance.id(), &runnable.flow.plan().flow_name, None);
        }
        if done.is_ok()
            && !poll.record_id.is_empty()
            && let Err(error) = log
                .forget_records(&lease.flow.id, Timestamp::now().before(RECORD_RETENTION))
                .await
        {
            tracing::warn!(
                flow.id = %lease.flow.id,
                %error,
                "records of long ago cannot be forgotten",
            );
        }
        done
    }
}

/// Logs that a flow cannot run. Returns the time of the next try.
fn cannot_run(flow: &DeployedFlow, error: &versions::Error) -> Timestamp {
    tracing::error!(flow.id = %flow.id, %error, "a flow that polls cannot run");
    Timestamp::steady().after(MAX_RETRY_DELAY)
}

/// Returns the time until the first flow is due, bounded because clocks may be set.
fn pause(first: Option<Timestamp>, now: Timestamp) -> Duration {
    first.map_or(MAX_RETRY_DELAY, |first| {
        first.since(now).min(MAX_RETRY_DELAY)
    })
}

/// Returns the flows of a snapshot that poll.
fn polled(snapshot: &Snapshot) -> impl Iterator<Item = Arc<DeployedFlow>> {
    snapshot
        .flows()
        .filter(|flow| flow.polls && !flow.paused)
        .cloned()
}

fn poll_of(flow: &CompiledFlow) -> Option<&Poll> {
    match flow.plan().trigger.as_ref()?.kind.as_ref()? {
        Kind::Poll(poll) => Some(poll),
        Kind::Webhook(_) | Kind::Manual(_) | Kind::Schedule(_) | Kind::Api(_) => None,
    }
}

/// Returns the monotonic time of the cycle after the one that began and ended at these instants of
/// the wall clock. `steady` is its end on the monotonic clock: a wall clock that was set during the
/// cycle makes the wait no longer than the interval.
fn due(poll: &Poll, began_at: Timestamp, ended: Timestamp, steady: Timestamp) -> Timestamp {
    let Some(schedule) = &poll.schedule else {
        let interval = Duration::from_millis(poll.interval_ms);
        return began_at
            .to_steady()
            .after(interval)
            .min(steady.after(interval));
    };
    let never = Timestamp::from_millis(i64::MAX);
    match (
        CronExpression::parse(&schedule.cron),
        timezone(&schedule.timezone),
    ) {
        (Ok(cron), Ok(zone)) => cron
            .next_after(ended, &zone)
            .map_or(never, Timestamp::to_steady),
        (Err(_), _) | (_, Err(_)) => never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_until_the_first_flow_is_due_and_not_for_long() {
        let now = Timestamp::from_millis(1_000_000);
        let rests = |millis: i64| {
            pause(
                Some(Timestamp::from_millis(
                    now.as_millis().saturating_add(millis),
                )),
                now,
            )
        };
        assert_eq!(pause(None, now), MAX_RETRY_DELAY);
        assert_eq!(rests(40), Duration::from_millis(40));
        assert_eq!([rests(60_000), rests(i64::MAX)], [MAX_RETRY_DELAY; 2]);
        assert_eq!(rests(-1), Duration::ZERO);
    }
}
