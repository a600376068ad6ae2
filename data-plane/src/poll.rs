//! Polls: asks the endpoints of flows again and again, and puts what they have into the log as
//! messages, which any node takes from there. Who polls for a flow, and what a poll remembers, is
//! in the log too: a node goes on where a dead one stopped. Nothing here knows lanes or targets.

mod answer;
mod cursor;
mod cycle;
mod find;
mod gathered;
mod hold;
mod link;
mod looks;
mod page;
mod place;
mod records;
mod repeat;
mod request;
mod state;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kanat_engine::Resources;
use kanat_flow::schedule::{CronExpression, timezone};
use kanat_message_log::{Error, MessageLog, PollClaim, PollClaimOutcome, PollCycleEnd};
use kanat_model::Timestamp;
use kanat_model::id::BootId;
use kanat_net::outbound;
use kanat_proto::plan::v1::{Poll, trigger::Kind};
use kanat_telemetry::metrics;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::backlog::Backlog;
use crate::connector::Bounds;
use crate::observed::Observer;
use crate::plans::{DeployedFlow, Flow, Plans, Runnable, Snapshot, versions};
use cycle::{Cycle, Halt, Outcome};
use hold::Hold;
use looks::{Looked, Looks};
use place::{Place, Places, Source};
use records::REMEMBERED;
use request::Requests;
use state::{Progress, State};

#[cfg(feature = "fuzz")]
pub(crate) use self::{find::found, link::next as link_next};

/// One that could not run, or was another's, is looked at again after so long at least.
const LOOK: Duration = Duration::from_millis(200);

/// When the log cannot be asked, or the flow is another's, it is asked again after so long at most.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What polls of this node have in common.
pub(crate) struct Poller {
    pub log: Arc<dyn MessageLog>,
    pub plans: Plans,
    pub outbound: outbound::Client,
    /// What connectors are given; polls share it with all other calls.
    pub bounds: Arc<Bounds>,
    /// Bound of what waits; polls leave off while it is reached.
    pub backlog: Arc<Backlog>,
    /// How long others wait for a word of a node that polls.
    pub lease: Duration,
    /// Where the records of long pages are kept while they come.
    pub spill: PathBuf,
    /// Version of the build, for `User-Agent`.
    pub build: String,
}

impl Poller {
    /// Polls until it is stopped; what is under way then is given back for another node to go on
    /// with.
    pub async fn run(self, stop: CancellationToken) {
        let poller = Arc::new(self);
        let owner = BootId::generate();
        let places = Places::new();
        let mut snapshot = Arc::new(Snapshot::default());
        let mut looks = Looks::default();
        let mut running = JoinSet::new();
        let mut replaced = poller.plans.replaced();
        while !stop.is_cancelled() {
            // Before the look, so that no change after it goes unseen.
            replaced.borrow_and_update();
            let current = poller.plans.load();
            if !Arc::ptr_eq(&current, &snapshot) {
                looks.replace(polled(&current), Timestamp::steady());
                snapshot = current;
            }
            let now = Timestamp::steady();
            while let Some(flow) = looks.next_due(now) {
                let poller = Arc::clone(&poller);
                let owner = owner.clone();
                let places = Arc::clone(&places);
                let stop = stop.clone();
                running.spawn(async move {
                    let again_at = match flow.ready().map(|flow| Source::of(&flow)) {
                        Ok(source) => tokio::select! {
                            place = Place::take(&places, source) => {
                                poller.look(&flow, owner, place, &stop).await
                            }
                            () = stop.cancelled() => Timestamp::steady(),
                        },
                        Err(error) => cannot_run(&flow, &error),
                    };
                    Looked {
                        flow_id: flow.id.clone(),
                        version: flow.version,
                        again_at,
                    }
                });
            }
            let pause = pause(looks.first(), Timestamp::steady());
            tokio::select! {
                Some(ended) = running.join_next() => match ended {
                    Ok(looked) => looks.ended(looked, Timestamp::steady()),
                    Err(error) => tracing::error!(%error, "a poll broke off"),
                },
                Ok(()) = replaced.changed() => {}
                () = sleep(pause) => {}
                () = stop.cancelled() => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Polls for the flow if it is due and nobody else does. Says when to look again.
    async fn look(
        &self,
        flow: &DeployedFlow,
        owner: BootId,
        place: Place,
        stop: &CancellationToken,
    ) -> Timestamp {
        let now = Timestamp::steady();
        // It waited for its place, and what is deployed may be another version by now, with other
        // resources.
        let snapshot = self.plans.load();
        let as_deployed =
            |deployed: &&Arc<DeployedFlow>| deployed.version == flow.version && !deployed.paused;
        let Some(flow) = snapshot.flow(&flow.id).filter(as_deployed) else {
            return now.after(LOOK);
        };
        let runnable = match snapshot.runnable(flow) {
            Ok(Some(runnable)) => runnable,
            Ok(None) => return now.after(LOOK),
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
            Ok(PollClaimOutcome::Later(at)) => at.min(now.after(ASK_AGAIN)).max(now.after(LOOK)),
            Ok(PollClaimOutcome::Taken { token, state }) => {
                let hold = Hold {
                    flow: Arc::clone(flow),
                    owner,
                    token,
                    lease: self.lease,
                };
                match self
                    .poll(&runnable, &hold, State::read(&state), place, stop)
                    .await
                {
                    Ok(due) => due,
                    Err(error) => {
                        tracing::warn!(
                            flow.id = %flow.id,
                            %error,
                            "what a poll came to cannot be written down",
                        );
                        Timestamp::steady().after(ASK_AGAIN)
                    }
                }
            }
            Err(error) => {
                tracing::warn!(flow.id = %flow.id, %error, "cannot see whether a poll is due");
                now.after(ASK_AGAIN)
            }
        }
    }

    /// One cycle, or the rest of one, under a hold. Says when the next is due.
    async fn poll(
        &self,
        runnable: &Runnable,
        hold: &Hold,
        state: State,
        place: Place,
        stop: &CancellationToken,
    ) -> Result<Timestamp, Error> {
        let Some(poll) = poll_of(&runnable.flow) else {
            return Ok(Timestamp::steady().after(ASK_AGAIN));
        };
        let log = self.log.as_ref();
        let now = Timestamp::now();
        let resumed = state
            .progress
            .clone()
            .filter(|progress| progress.version == hold.flow.version);
        let progress = match resumed {
            Some(progress) => progress,
            // A flow that polls at fixed times does not poll at its deploy.
            None if poll.schedule.is_some() && state.scheduled_for != Some(hold.flow.version) => {
                let due = due(poll, now, now, Timestamp::steady());
                let state = State {
                    scheduled_for: Some(hold.flow.version),
                    progress: None,
                    ..state
                };
                return hold.give_back(log, due, Some(&state), None).await;
            }
            None => Progress::first(now, hold.flow.version),
        };
        let began_at = progress.began_at;
        let left = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = runnable.removed.cancelled() => {}
            }
        };
        let outcome = tokio::select! {
            outcome = self.cycle(runnable, poll, hold, &state, progress, place) => outcome,
            () = hold.keep_on(log) => return Ok(Timestamp::steady().after(ASK_AGAIN)),
            () = left => {
                // Another node goes on at once, from the page that is not done, where it has the
                // flow.
                return hold.give_back(log, Timestamp::steady(), None, None).await;
            }
        };
        let ended = Timestamp::now();
        let steady = Timestamp::steady();
        let counts = metrics().flows.of(hold.flow.id.as_str());
        let mut next = due(poll, began_at, ended, steady).max(steady);
        let (state, error) = match outcome {
            Ok(Outcome {
                state,
                taken,
                complaint,
            }) => {
                metrics().poll_messages.inc_by(taken as u64);
                if let Some(complaint) = &complaint {
                    tracing::warn!(flow.id = %hold.flow.id, error = %complaint, "a poll failed");
                    counts.poll_failed();
                } else {
                    tracing::debug!(flow.id = %hold.flow.id, messages = taken, "polled");
                    counts.poll_succeeded();
                }
                (state, complaint)
            }
            // Any node goes on from the page that is not done.
            Err(Halt::Waits { until }) => return hold.give_back(log, until, None, None).await,
            Err(Halt::Failed {
                message,
                not_before,
            }) => {
                tracing::warn!(flow.id = %hold.flow.id, error = %message, "a poll failed");
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
        hold.give_back(
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
        hold: &Hold,
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
        let requests = Requests::prepare(poll, instance, state, &agent, progress.began_at)?;
        if progress.pages == 0 {
            progress.next = requests.first();
        }
        let log = self.log.as_ref();
        let observer = Observer {
            observed: self.plans.observed(),
            environment: &runnable.flow.environment_id,
        };
        let outbound = &self.outbound;
        let bounds = self.bounds.as_ref();
        let plans = &self.plans;
        let spill = self.spill.as_path();
        let backlog = self.backlog.as_ref();
        let cycle = Cycle {
            log,
            plans,
            outbound,
            bounds,
            backlog,
            runnable,
            instance,
            poll,
            hold,
            requests,
            spill,
            observer,
        };
        let done = cycle.run(state, progress, place).await;
        if let (Ok(_), Some(instance)) = (&done, instance) {
            observer.polled(instance.id(), &runnable.flow.plan().flow_name, None);
        }
        if done.is_ok()
            && !poll.record_id.is_empty()
            && let Err(error) = log
                .forget_records(&hold.flow.id, Timestamp::now().before(REMEMBERED))
                .await
        {
            tracing::warn!(
                flow.id = %hold.flow.id,
                %error,
                "records of long ago cannot be forgotten",
            );
        }
        done
    }
}

/// Says of a flow that it cannot run, and when to look again.
fn cannot_run(flow: &DeployedFlow, error: &versions::Error) -> Timestamp {
    tracing::error!(flow.id = %flow.id, %error, "a flow that polls cannot run");
    Timestamp::steady().after(ASK_AGAIN)
}

/// Until the first flow is due; not much longer, since clocks are set.
fn pause(first: Option<Timestamp>, now: Timestamp) -> Duration {
    first.map_or(ASK_AGAIN, |first| first.since(now).min(ASK_AGAIN))
}

/// The flows of a snapshot that poll.
fn polled(snapshot: &Snapshot) -> impl Iterator<Item = Arc<DeployedFlow>> {
    snapshot
        .flows()
        .filter(|flow| flow.polls && !flow.paused)
        .cloned()
}

fn poll_of(flow: &Flow) -> Option<&Poll> {
    match flow.plan().trigger.as_ref()?.kind.as_ref()? {
        Kind::Poll(poll) => Some(poll),
        Kind::Webhook(_) | Kind::Manual(_) | Kind::Schedule(_) | Kind::Api(_) => None,
    }
}

/// When the cycle after one is due that began and ended at these instants of the wall clock, by the
/// clock of waits. `steady` is the end by that clock: a wall clock that was set during the cycle
/// makes the wait no longer than the interval.
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
        assert_eq!(pause(None, now), ASK_AGAIN);
        assert_eq!(rests(40), Duration::from_millis(40));
        assert_eq!([rests(60_000), rests(i64::MAX)], [ASK_AGAIN; 2]);
        assert_eq!(rests(-1), Duration::ZERO);
    }
}
