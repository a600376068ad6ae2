//! Takes up what waits in the log: retries that are due, what found no room, what another process
//! began, what a dead node left. Claims are made flow by flow, within the room of each flow's lane,
//! so that no backlog stands in another's way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kanat_message_log::{
    AwaitedMessages, Claim, ClaimedMessage, Error, Outcome, Room, Share, TraceRecord, Waiting,
};
use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, EpochId, FlowId};
use kanat_model::message::{ErrorKind, Failure};
use tokio::time::Instant;

use super::job::{Ended, Job, Reply};
use super::lane::{Free, From};
use super::lease::Hold;
use super::tally::Tally;
use super::{Pipeline, lane_of, outlook};
use crate::connector::Outlook;
use crate::delivery::Attempt;
use crate::plans::{Runnable, Snapshot};
use crate::work::Work;

/// The log is looked through at least so often: the end of another node's lease wakes nobody.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// And at most so often, however often it changes.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// Looking takes a tenth of the time at most, also where thousands of flows have something waiting.
const LOOK_SHARE: u32 = 10;
/// But there is no longer rest than this: a look that waited for a database that stood still says
/// nothing of the next.
const LONGEST_REST: Duration = Duration::from_secs(2);
/// A message that finds its lane full after all is tried again after this time.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// Messages of one flow in one claim.
const BATCH: u64 = 256;
/// Messages in one claim.
const CLAIM: u64 = 1024;
/// Messages of a flow that this node does not know, in one claim.
const UNKNOWN_BATCH: u64 = 16;

/// What the claimer remembers from one look to the next.
#[derive(Default)]
struct Memory {
    /// The flow that came first in the last look; the next one begins after it, so that each gets
    /// its turn.
    first: Option<FlowId>,
    /// Flows of environments that this node does not serve. Who claims their messages keeps them
    /// from those who do.
    not_ours: HashSet<FlowId>,
    /// The environments that it served then.
    served: Vec<EnvironmentId>,
    /// Versions of flows that this node cannot run with the plans that it has. Their messages are
    /// left to others.
    not_yet: HashMap<FlowId, Vec<u32>>,
    /// The plans that it had then.
    plans: Vec<(EpochId, u64)>,
}

/// How a message ends that is not run.
struct Ending {
    outcome: Outcome,
    kind: ErrorKind,
    stage: &'static str,
    name: &'static str,
    status: &'static str,
}

/// What a look at the log came to.
struct Look {
    claimed: usize,
    next_due: Option<Timestamp>,
}

impl Pipeline {
    /// Claims until the pipeline drains.
    pub(super) async fn claim_until_drained(self: &Arc<Self>) {
        let mut changed = self.log.claimable();
        let mut memory = Memory::default();
        loop {
            // Before the look, so that no change after it goes unseen.
            changed.borrow_and_update();
            let looked_at = Instant::now();
            let pause = match self.look(&mut memory).await {
                Ok(Look {
                    claimed: 0,
                    next_due,
                }) => pause(next_due, Timestamp::steady()),
                Ok(_) => Duration::ZERO,
                Err(error) => {
                    tracing::warn!(%error, "the message log cannot be looked through");
                    LOOK_EVERY
                }
            };
            let rest = rest(looked_at.elapsed());
            let woken = async {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    Ok(()) = changed.changed() => {}
                    () = self.lanes.room().notified() => {}
                    () = self.turns.came().notified() => {}
                }
                if !pause.is_zero() {
                    tokio::time::sleep_until(looked_at + rest).await;
                }
            };
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = woken => {}
            }
        }
    }

    async fn look(self: &Arc<Self>, memory: &mut Memory) -> Result<Look, Error> {
        let Some(hold) = self.leases.current() else {
            return Ok(Look {
                claimed: 0,
                next_due: None,
            });
        };
        if !self.plans.loaded() {
            return Ok(Look {
                claimed: 0,
                next_due: None,
            });
        }
        let waiting = self.log.waiting().await?;
        let next_due = waiting.iter().filter_map(|flow| flow.next_due).min();
        let snapshot = self.plans.load();
        let bytes = self.lanes.memory_left(self.largest);
        let shares = match bytes >= self.largest {
            true => self.shares(&snapshot, &waiting, memory),
            false => Vec::new(),
        };
        let awaited = self.awaited(&snapshot);
        if shares.is_empty() && awaited.is_empty() {
            return Ok(Look {
                claimed: 0,
                next_due,
            });
        }
        let claimed = self
            .log
            .claim(Claim {
                owner: hold.owner().clone(),
                bytes: bytes as u64,
                shares,
                awaited,
            })
            .await?;
        let count = claimed.len();
        for message in claimed {
            kanat_failpoint::hit("claim.taken");
            self.take_up(message, &hold, memory).await;
        }
        Ok(Look {
            claimed: count,
            next_due,
        })
    }

    /// Messages that callers of this node wait for, as many as their lanes have places for.
    fn awaited(&self, snapshot: &Snapshot) -> Vec<AwaitedMessages> {
        let mut awaited = Vec::new();
        for (flow_id, seqs) in self.turns.awaited() {
            let Some(deployed) = snapshot.flow(&flow_id).filter(|flow| !flow.paused) else {
                continue;
            };
            let Ok(flow) = deployed.ready() else { continue };
            let most = match outlook(&self.bounds, &flow) {
                Outlook::None => continue,
                Outlook::One => 1,
                Outlook::Any => usize::MAX,
            };
            let lane = self.lanes.lane(lane_of(&flow));
            let free = self.lanes.free(&lane, self.largest);
            let room = free.messages.min(free.bytes / self.largest.max(1));
            let room = room.min(most);
            if room > 0 {
                awaited.push(AwaitedMessages {
                    seqs,
                    messages: u32::try_from(room).unwrap_or(u32::MAX),
                });
            }
        }
        awaited
    }

    /// Returns how many messages of which flow there is room for now, lane by lane.
    fn shares(&self, snapshot: &Snapshot, waiting: &[Waiting], memory: &mut Memory) -> Vec<Share> {
        forget_former_plans(snapshot, memory);
        let due_of = |flow: &Waiting| {
            if memory.not_yet.contains_key(&flow.flow_id) {
                flow.due
            } else {
                0
            }
        };
        self.waiting_for_plans
            .store(waiting.iter().map(due_of).sum(), Ordering::Relaxed);
        // Flows that share a lane share its room.
        let mut lanes: HashMap<String, usize> = HashMap::new();
        let mut shares: Vec<Share> = Vec::new();
        let mut places: Vec<u64> = Vec::new();
        let mut left = CLAIM;
        let mut first = None;
        let begin = memory.first.as_ref().map_or(0, |first| {
            waiting.partition_point(|flow| flow.flow_id <= *first)
        });
        let in_turn = waiting[begin..].iter().chain(&waiting[..begin]);
        for Waiting { flow_id, due, .. } in in_turn.filter(|flow| flow.due > 0) {
            let deployed = snapshot.flow(flow_id);
            if deployed.is_some_and(|flow| flow.paused) {
                continue;
            }
            let mut open = |free: Free| {
                shares.push(Share {
                    bytes: free.bytes as u64,
                    rooms: Vec::new(),
                });
                places.push(free.messages as u64);
                shares.len() - 1
            };
            // One that cannot run is claimed all the same, and told of.
            let (share, most) = match deployed.and_then(|flow| flow.ready().ok()) {
                Some(flow) => {
                    let most = match outlook(&self.bounds, &flow) {
                        Outlook::None => continue,
                        Outlook::One => 1,
                        // What is left to others must not take the room of what this node can run.
                        Outlook::Any if memory.not_yet.contains_key(flow_id) => UNKNOWN_BATCH,
                        Outlook::Any => BATCH,
                    };
                    let lane = lane_of(&flow);
                    let share = match lanes.get(lane) {
                        Some(share) => *share,
                        None => {
                            let share = open(self.lanes.free(&self.lanes.lane(lane), self.largest));
                            lanes.insert(lane.to_owned(), share);
                            share
                        }
                    };
                    (share, most)
                }
                None if memory.not_ours.contains(flow_id) => continue,
                None => {
                    let share = open(Free {
                        messages: usize::MAX,
                        bytes: usize::MAX,
                    });
                    (share, UNKNOWN_BATCH)
                }
            };
            let messages = (*due).min(most).min(places[share]).min(left);
            places[share] -= messages;
            left -= messages;
            if messages > 0 {
                first.get_or_insert_with(|| flow_id.clone());
                shares[share].rooms.push(Room {
                    flow_id: flow_id.clone(),
                    messages: u32::try_from(messages).unwrap_or(u32::MAX),
                    without_versions: memory.not_yet.get(flow_id).cloned().unwrap_or_default(),
                });
            }
        }
        memory.first = first;
        shares.retain(|share| share.bytes > 0 && !share.rooms.is_empty());
        shares
    }

    /// Puts a claimed message into its lane, or gives it back.
    async fn take_up(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        hold: &Arc<Hold>,
        memory: &mut Memory,
    ) {
        // A caller whose message does not run here after all is told so when this is dropped.
        let reply = self.turns.take(&claimed.flow_id, &claimed.lease.message_id);
        match self
            .plans
            .program(
                &claimed.environment_id,
                &claimed.flow_id,
                claimed.flow_version,
            )
            .await
        {
            Ok(Some(runnable)) => self.queue(claimed, hold, runnable, reply),
            Ok(None)
                if self
                    .plans
                    .load()
                    .environment(&claimed.environment_id)
                    .is_none() =>
            {
                memory.not_ours.insert(claimed.flow_id.clone());
                // With the age that it has: whether anybody serves its environment shows by that.
                self.finish(Ended::undone(claimed.lease, hold, claimed.due_at));
            }
            Ok(None) => self.give_up(
                claimed,
                hold,
                "the version of the flow that it was accepted under is not known",
            ),
            Err(crate::plans::versions::Error::Deleted(_)) => self.discard(claimed, hold),
            Err(crate::plans::versions::Error::Log(error)) => {
                tracing::warn!(%error, "a former version of a flow cannot be read");
                let due = Timestamp::steady().after(FULL_PAUSE);
                self.finish(Ended::undone(claimed.lease, hold, due));
            }
            // Another node may run it: one that has later plans, or another build.
            Err(
                error @ (crate::plans::versions::Error::Later { .. }
                | crate::plans::versions::Error::Encoding { .. }
                | crate::plans::versions::Error::Saved { .. }
                | crate::plans::versions::Error::Compile { .. }),
            ) => {
                let failure = Failure {
                    kind: ErrorKind::Configuration,
                    message: format!(
                        "it waits for a node that runs version {}: {error}",
                        claimed.flow_version
                    ),
                    field: None,
                    expression: None,
                };
                let versions = memory.not_yet.entry(claimed.flow_id.clone()).or_default();
                if !versions.contains(&claimed.flow_version) {
                    versions.push(claimed.flow_version);
                }
                // With the age that it has: whether anybody runs it shows by that.
                self.finish(Ended::held(claimed.lease, hold, claimed.due_at, failure));
            }
        }
    }

    fn queue(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        hold: &Arc<Hold>,
        runnable: Runnable,
        reply: Option<Reply>,
    ) {
        let lease = claimed.lease.clone();
        let work = work(claimed);
        let lane = self.lanes.lane(lane_of(&runnable.flow));
        let Some(slot) = self.lanes.reserve(&lane, work.bytes(), From::Log) else {
            let due = Timestamp::steady().after(FULL_PAUSE);
            return self.finish(Ended::undone(lease, hold, due));
        };
        let job = Box::new(Job {
            lease,
            hold: hold.clone(),
            slot,
            runnable,
            work,
            reply,
        });
        self.begin_run(job, self.begin());
    }

    /// A message that cannot run at all becomes a dead letter that says why.
    fn give_up(self: &Arc<Self>, claimed: ClaimedMessage, hold: &Arc<Hold>, message: &str) {
        let ending = Ending {
            outcome: Outcome::DeadLetter,
            kind: ErrorKind::Configuration,
            stage: "dead_lettered",
            name: "plan",
            status: "failed",
        };
        self.end(claimed, hold, &ending, message);
    }

    /// A message of a deleted flow needs no delivery.
    fn discard(self: &Arc<Self>, claimed: ClaimedMessage, hold: &Arc<Hold>) {
        let ending = Ending {
            outcome: Outcome::Discarded,
            kind: ErrorKind::FlowDeleted,
            stage: "discarded",
            name: "flow",
            status: "ok",
        };
        self.end(claimed, hold, &ending, Failure::FLOW_DELETED);
    }

    /// Ends a claimed message without an attempt.
    fn end(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        hold: &Arc<Hold>,
        ending: &Ending,
        message: &str,
    ) {
        let number = claimed.attempts.saturating_add(1);
        let failure = Failure {
            kind: ending.kind,
            message: message.to_owned(),
            field: None,
            expression: None,
        };
        let record = TraceRecord {
            at: Timestamp::now(),
            stage: ending.stage.to_owned(),
            name: ending.name.to_owned(),
            status: ending.status.to_owned(),
            duration_ms: 0,
            request: None,
            response: None,
            error: Some(message.to_owned()),
            attempt: number,
        };
        let outcome = ending.outcome;
        let trace = vec![record];
        let attempt = Attempt {
            number,
            outcome,
            output: None,
            failure: Some(failure),
            trace,
            answered: None,
        };
        let exit = self
            .backlog
            .exit(self.backlog.share(&claimed.flow_id), claimed.stored_bytes);
        let tally = Some(Tally::of(&claimed.flow_id, claimed.received_at).leaving(exit));
        let settlement = attempt.settlement(claimed.lease);
        self.finish(Ended {
            settlement,
            hold: hold.clone(),
            slot: None,
            tally,
            told: None,
        });
    }

    pub(super) fn finish(self: &Arc<Self>, ended: Ended) {
        let this = Arc::clone(self);
        let in_flight = self.begin();
        self.tasks.spawn(async move {
            this.settle(ended).await;
            drop(in_flight);
        });
    }
}

/// Forgets which flows this node could not run, where it has other plans since.
fn forget_former_plans(snapshot: &Snapshot, memory: &mut Memory) {
    if !snapshot
        .environments()
        .map(|environment| &environment.id)
        .eq(&memory.served)
    {
        memory.not_ours.clear();
        memory.served = snapshot
            .environments()
            .map(|environment| environment.id.clone())
            .collect();
    }
    let plans = || {
        snapshot
            .environments()
            .map(|environment| (&environment.epoch, environment.generation))
    };
    if !plans().eq(memory
        .plans
        .iter()
        .map(|(epoch, generation)| (epoch, *generation)))
    {
        memory.not_yet.clear();
        memory.plans = plans()
            .map(|(epoch, generation)| (epoch.clone(), generation))
            .collect();
    }
}

/// From the beginning of a look that took so long to that of the next.
fn rest(took: Duration) -> Duration {
    took.saturating_mul(LOOK_SHARE).clamp(
        LOOK_PAUSE,
        took.saturating_add(LONGEST_REST).max(LOOK_PAUSE),
    )
}

fn pause(next_due: Option<Timestamp>, now: Timestamp) -> Duration {
    match next_due {
        Some(due) => due.since(now).clamp(Duration::from_millis(1), LOOK_EVERY),
        None => LOOK_EVERY,
    }
}

fn work(claimed: ClaimedMessage) -> Work {
    Work {
        id: claimed.lease.message_id,
        source: claimed.trigger,
        payload: claimed.payload,
        raw_body: claimed.raw_body,
        trigger: claimed.request,
        steps: claimed.steps,
        received_at: claimed.received_at,
        stored_bytes: claimed.stored_bytes,
        attempts: claimed.attempts,
        max_attempts: claimed.max_attempts,
        traceparent: claimed.traceparent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_takes_a_tenth_of_the_time_and_one_that_was_held_up_holds_up_no_other() {
        let millis = Duration::from_millis;
        for (took, next) in [
            (0, 10),
            (1, 10),
            (20, 200),
            (200, 2_000),
            (1_000, 3_000),
            (22_000, 24_000),
        ] {
            assert_eq!(rest(millis(took)), millis(next), "{took}");
        }
        assert_eq!(rest(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn the_next_look_is_when_something_is_due_and_soon_in_any_case() {
        let now = Timestamp::from_millis(1_000_000);
        let after = |millis: u64| pause(Some(now.after(Duration::from_millis(millis))), now);
        assert_eq!(
            [after(300), after(0), after(60_000)],
            [
                Duration::from_millis(300),
                Duration::from_millis(1),
                LOOK_EVERY
            ]
        );
        assert_eq!(
            pause(Some(now.before(Duration::from_secs(5))), now),
            Duration::from_millis(1)
        );
        assert_eq!(pause(None, now), LOOK_EVERY);
    }
}
