//! Claims messages that wait in the log: due retries, messages that found no room, and messages of
//! other processes and of dead nodes. Claims are made per flow, within the room of its lane, so
//! that no backlog delays another flow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kanat_engine::Record;
use kanat_message_log::{
    AwaitedMessages, Claim, ClaimBudget, ClaimedMessage, Error, Outcome, Room, Waiting,
};
use kanat_model::id::{EnvironmentId, EpochId, FlowId};
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::{Timestamp, saturated};
use tokio::time::Instant;

use super::job::{FinishedJob, Job, Reply};
use super::lane::{Free, MessageOrigin};
use super::lease::ActiveLease;
use super::tally::Tally;
use super::{Pipeline, capacity, lane_of};
use crate::connector::Capacity;
use crate::delivery::Attempt;
use crate::delivery::trace::single;
use crate::plans::{Runnable, Snapshot};
use crate::work::MessageInMemory;

/// Longest time between two scans of the log. The expiry of another node's lease wakes no claimer.
const MAX_SCAN_INTERVAL: Duration = Duration::from_millis(500);
/// Shortest time between two scans, however often the log changes.
const MIN_SCAN_INTERVAL: Duration = Duration::from_millis(10);
/// Ratio of the time between two scans to the duration of a scan, so that scans take at most a
/// tenth of the time even with thousands of flows.
const SCAN_INTERVAL_FACTOR: u32 = 10;
/// Longest pause after a scan: a scan that waited for a stalled database says nothing about the
/// next one.
const MAX_SCAN_PAUSE: Duration = Duration::from_secs(2);
/// Delay of a message that finds its lane full after all.
const FULL_LANE_DELAY: Duration = Duration::from_secs(1);
/// Age up to which a message waits for its version. After a restore the log lacks versions that
/// nodes still accept messages under. They write them down once they hear of the restore.
const UNKNOWN_VERSION_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay of a message whose version cannot be read from the log yet.
const VERSION_DELAY: Duration = Duration::from_secs(1);
/// Messages of one flow in one claim.
const MAX_BATCH: u64 = 256;
/// Messages in one claim.
const MAX_CLAIM: u64 = 1024;
/// Messages of a flow that this node does not know, in one claim.
const MAX_UNKNOWN_BATCH: u64 = 16;

/// State of the claimer between two scans.
#[derive(Default)]
struct Memory {
    /// First flow of the last scan. The next scan begins after it, so that each flow gets its turn.
    first: Option<FlowId>,
    /// Flows of environments that this node does not serve. A claim of their messages would keep
    /// them from nodes that do.
    unserved: HashSet<FlowId>,
    /// Environments served at the last scan.
    served: Vec<EnvironmentId>,
    /// Versions of flows that this node cannot run with its current plans. Their messages are left
    /// to other nodes.
    unrunnable: HashMap<FlowId, Vec<u32>>,
    /// Plans at the last scan.
    plans: Vec<(EpochId, u64)>,
}

/// Result of a scan of the log.
struct Scan {
    claimed: usize,
    next_due: Option<Timestamp>,
}

impl Pipeline {
    /// Claims until the pipeline drains.
    pub(super) async fn claim_until_drained(self: &Arc<Self>) {
        let mut changed = self.log.claimable();
        let mut memory = Memory::default();
        loop {
            // Marked as seen before the scan, so that no later change is missed.
            changed.borrow_and_update();
            let begun_at = Instant::now();
            let pause = match self.scan(&mut memory).await {
                Ok(Scan {
                    claimed: 0,
                    next_due,
                }) => pause(next_due, Timestamp::steady()),
                Ok(_) => Duration::ZERO,
                Err(error) => {
                    tracing::warn!(%error, "the message log cannot be scanned");
                    MAX_SCAN_INTERVAL
                }
            };
            let interval = scan_interval(begun_at.elapsed());
            let woken = async {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    Ok(()) = changed.changed() => {}
                    () = self.lanes.room().notified() => {}
                    () = self.turns.came().notified() => {}
                }
                if !pause.is_zero() {
                    tokio::time::sleep_until(begun_at + interval).await;
                }
            };
            tokio::select! {
                biased;
                () = self.draining.cancelled() => return,
                () = woken => {}
            }
        }
    }

    async fn scan(self: &Arc<Self>, memory: &mut Memory) -> Result<Scan, Error> {
        let Some(node_lease) = self.leases.current() else {
            return Ok(Scan {
                claimed: 0,
                next_due: None,
            });
        };
        if !self.plans.is_complete() {
            return Ok(Scan {
                claimed: 0,
                next_due: None,
            });
        }
        let waiting = self.log.waiting().await?;
        let next_due = waiting.iter().filter_map(|flow| flow.next_due).min();
        let snapshot = self.plans.load();
        let bytes = self.lanes.memory_left(self.largest);
        let budgets = match bytes >= self.largest {
            true => self.budgets(&snapshot, &waiting, memory),
            false => Vec::new(),
        };
        let awaited = self.awaited(&snapshot);
        if budgets.is_empty() && awaited.is_empty() {
            return Ok(Scan {
                claimed: 0,
                next_due,
            });
        }
        let claimed = self
            .log
            .claim(Claim {
                owner: node_lease.owner().clone(),
                bytes: bytes as u64,
                budgets,
                awaited,
            })
            .await?;
        let count = claimed.len();
        for message in claimed {
            kanat_failpoint::hit("claim.taken");
            self.take_up(message, &node_lease, memory).await;
        }
        Ok(Scan {
            claimed: count,
            next_due,
        })
    }

    /// Returns the messages that callers of this node wait for, as many as their lanes have slots
    /// for.
    fn awaited(&self, snapshot: &Snapshot) -> Vec<AwaitedMessages> {
        let mut awaited = Vec::new();
        for (flow_id, seqs) in self.turns.awaited() {
            let Some(deployed) = snapshot.flow(&flow_id).filter(|flow| !flow.paused) else {
                continue;
            };
            let Ok(flow) = deployed.compiled() else {
                continue;
            };
            let most = match capacity(&self.connectors, &flow) {
                Capacity::None => continue,
                Capacity::Probe => 1,
                Capacity::Full => usize::MAX,
            };
            let lane = self.lanes.lane(lane_of(&flow));
            let free = self.lanes.free(&lane, self.largest);
            let single = usize::from(free.single_bytes >= self.largest);
            let fitting = (free.bytes / self.largest.max(1)).max(single);
            let room = free.messages.min(fitting).min(most);
            if room > 0 {
                awaited.push(AwaitedMessages {
                    seqs,
                    messages: saturated(room),
                });
            }
        }
        awaited
    }

    /// Returns the memory budgets of the lanes, with the number of messages of each flow that its
    /// lane has room for now.
    fn budgets(
        &self,
        snapshot: &Snapshot,
        waiting: &[Waiting],
        memory: &mut Memory,
    ) -> Vec<ClaimBudget> {
        forget_former_plans(snapshot, memory);
        let due_of = |flow: &Waiting| {
            if memory.unrunnable.contains_key(&flow.flow_id) {
                flow.due
            } else {
                0
            }
        };
        self.waiting_for_plans
            .store(waiting.iter().map(due_of).sum(), Ordering::Relaxed);
        // Flows that share a lane share its room.
        let mut lanes: HashMap<String, usize> = HashMap::new();
        let mut budgets: Vec<ClaimBudget> = Vec::new();
        let mut places: Vec<u64> = Vec::new();
        let mut left = MAX_CLAIM;
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
                budgets.push(ClaimBudget {
                    bytes: free.bytes as u64,
                    single_bytes: free.single_bytes as u64,
                    rooms: Vec::new(),
                });
                places.push(free.messages as u64);
                budgets.len() - 1
            };
            // A message that cannot run is claimed too, so that its end is recorded.
            let (budget, most) = match deployed.and_then(|flow| flow.compiled().ok()) {
                Some(flow) => {
                    let most = match capacity(&self.connectors, &flow) {
                        Capacity::None => continue,
                        Capacity::Probe => 1,
                        // Messages that are left to other nodes must not take the room of those
                        // that this node can run.
                        Capacity::Full if memory.unrunnable.contains_key(flow_id) => {
                            MAX_UNKNOWN_BATCH
                        }
                        Capacity::Full => MAX_BATCH,
                    };
                    let lane = lane_of(&flow);
                    let budget = match lanes.get(lane) {
                        Some(budget) => *budget,
                        None => {
                            let budget =
                                open(self.lanes.free(&self.lanes.lane(lane), self.largest));
                            lanes.insert(lane.to_owned(), budget);
                            budget
                        }
                    };
                    (budget, most)
                }
                None if memory.unserved.contains(flow_id) => continue,
                None => {
                    let budget = open(Free {
                        messages: usize::MAX,
                        bytes: usize::MAX,
                        single_bytes: usize::MAX,
                    });
                    (budget, MAX_UNKNOWN_BATCH)
                }
            };
            let messages = (*due).min(most).min(places[budget]).min(left);
            places[budget] -= messages;
            left -= messages;
            if messages > 0 {
                first.get_or_insert_with(|| flow_id.clone());
                budgets[budget].rooms.push(Room {
                    flow_id: flow_id.clone(),
                    messages: saturated(messages),
                    without_versions: memory.unrunnable.get(flow_id).cloned().unwrap_or_default(),
                });
            }
        }
        memory.first = first;
        budgets.retain(|budget| !budget.rooms.is_empty());
        budgets
    }

    /// Puts a claimed message into its lane, or gives it back.
    async fn take_up(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        node_lease: &Arc<ActiveLease>,
        memory: &mut Memory,
    ) {
        // The drop of the reply tells the caller that its message does not run here.
        let reply = self.turns.take(&claimed.flow_id, &claimed.lease.message_id);
        match self
            .plans
            .runnable_version(
                &claimed.environment_id,
                &claimed.flow_id,
                claimed.flow_version,
            )
            .await
        {
            Ok(Some(runnable)) => self.queue(claimed, node_lease, runnable, reply),
            Ok(None)
                if self
                    .plans
                    .load()
                    .environment(&claimed.environment_id)
                    .is_none() =>
            {
                memory.unserved.insert(claimed.flow_id.clone());
                // The due time stays: its age shows whether any node serves the environment.
                self.finish(FinishedJob::release(
                    claimed.lease,
                    node_lease,
                    claimed.due_at,
                ));
            }
            Ok(None) if Timestamp::now().since(claimed.received_at) < UNKNOWN_VERSION_TIMEOUT => {
                self.release_until_version_is_there(claimed, node_lease);
            }
            Ok(None) => self.give_up(
                claimed,
                node_lease,
                "the version of the flow that it was accepted under is not known",
            ),
            Err(crate::plans::versions::Error::Deleted(_)) => self.discard(claimed, node_lease),
            Err(crate::plans::versions::Error::Log(error)) => {
                tracing::warn!(%error, "a former version of a flow cannot be read");
                self.release_until_version_is_there(claimed, node_lease);
            }
            // Another node may run it: one that has later plans, or another build.
            Err(
                error @ (crate::plans::versions::Error::NodeOutdated { .. }
                | crate::plans::versions::Error::Encoding { .. }
                | crate::plans::versions::Error::Saved { .. }
                | crate::plans::versions::Error::Compile { .. }),
            ) => {
                let failure = Failure::new(
                    ErrorKind::Configuration,
                    format!(
                        "it waits for a node that runs version {}: {error}",
                        claimed.flow_version
                    ),
                );
                let versions = memory
                    .unrunnable
                    .entry(claimed.flow_id.clone())
                    .or_default();
                if !versions.contains(&claimed.flow_version) {
                    versions.push(claimed.flow_version);
                }
                // The due time stays: its age shows whether any node runs the version.
                self.finish(FinishedJob::hold(
                    claimed.lease,
                    node_lease,
                    claimed.due_at,
                    failure,
                ));
            }
        }
    }

    fn queue(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        node_lease: &Arc<ActiveLease>,
        runnable: Runnable,
        reply: Option<Reply>,
    ) {
        let lease = claimed.lease.clone();
        let work = work(claimed);
        let lane = self.lanes.lane(lane_of(&runnable.flow));
        let Some(slot) = self.lanes.reserve(&lane, work.bytes(), MessageOrigin::Log) else {
            let due = Timestamp::steady().after(FULL_LANE_DELAY);
            return self.finish(FinishedJob::release(lease, node_lease, due));
        };
        let job = Box::new(Job {
            lease,
            node_lease: node_lease.clone(),
            slot,
            runnable,
            work,
            reply,
        });
        self.begin_run(job, self.begin());
    }

    fn release_until_version_is_there(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        node_lease: &Arc<ActiveLease>,
    ) {
        let due = Timestamp::steady().after(VERSION_DELAY);
        self.finish(FinishedJob::release(claimed.lease, node_lease, due));
    }

    /// Makes a message that cannot run a dead letter.
    fn give_up(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        node_lease: &Arc<ActiveLease>,
        message: &str,
    ) {
        let failure = Failure::new(ErrorKind::Configuration, message);
        let record = Record::new("dead_lettered", "plan", "failed", 0);
        self.end(claimed, node_lease, Outcome::DeadLetter, failure, record);
    }

    /// Discards a message of a deleted flow.
    fn discard(self: &Arc<Self>, claimed: ClaimedMessage, node_lease: &Arc<ActiveLease>) {
        let record = Record::new("discarded", "flow", "ok", 0);
        let failure = Failure::flow_deleted();
        self.end(claimed, node_lease, Outcome::Discarded, failure, record);
    }

    /// Ends a claimed message without an attempt.
    fn end(
        self: &Arc<Self>,
        claimed: ClaimedMessage,
        node_lease: &Arc<ActiveLease>,
        outcome: Outcome,
        failure: Failure,
        record: Record<'_>,
    ) {
        let number = claimed.attempts.saturating_add(1);
        let record = Record {
            at: Timestamp::now(),
            error: Some(failure.message.clone()),
            ..record
        };
        let attempt = Attempt {
            number,
            outcome,
            output: None,
            failure: Some(failure),
            trace: single(number, record),
            call_outcome: None,
        };
        let exit = self
            .backlog
            .exit(self.backlog.share(&claimed.flow_id), claimed.stored_bytes);
        let tally = Some(Tally::of(&claimed.flow_id, claimed.received_at).leaving(exit));
        let settlement = attempt.settlement(claimed.lease);
        self.finish(FinishedJob {
            settlement,
            node_lease: node_lease.clone(),
            slot: None,
            tally,
            reply: None,
        });
    }

    pub(super) fn finish(self: &Arc<Self>, ended: FinishedJob) {
        let this = Arc::clone(self);
        let in_flight = self.begin();
        self.tasks.spawn(async move {
            this.settle(ended).await;
            drop(in_flight);
        });
    }
}

/// Forgets the flows that this node could not run, if its plans have changed.
fn forget_former_plans(snapshot: &Snapshot, memory: &mut Memory) {
    if !snapshot
        .environments()
        .map(|environment| &environment.id)
        .eq(&memory.served)
    {
        memory.unserved.clear();
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
        memory.unrunnable.clear();
        memory.plans = plans()
            .map(|(epoch, generation)| (epoch.clone(), generation))
            .collect();
    }
}

/// Returns the shortest time from the start of one scan to the start of the next.
fn scan_interval(took: Duration) -> Duration {
    took.saturating_mul(SCAN_INTERVAL_FACTOR).clamp(
        MIN_SCAN_INTERVAL,
        took.saturating_add(MAX_SCAN_PAUSE).max(MIN_SCAN_INTERVAL),
    )
}

fn pause(next_due: Option<Timestamp>, now: Timestamp) -> Duration {
    match next_due {
        Some(due) => due
            .since(now)
            .clamp(Duration::from_millis(1), MAX_SCAN_INTERVAL),
        None => MAX_SCAN_INTERVAL,
    }
}

fn work(claimed: ClaimedMessage) -> MessageInMemory {
    MessageInMemory {
        id: claimed.lease.message_id,
        trigger_kind: claimed.trigger,
        payload: claimed.payload,
        raw_body: claimed.raw_body,
        trigger_document: claimed.request,
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
    fn scans_take_a_tenth_of_the_time_and_a_slow_one_delays_the_next_by_a_bounded_time() {
        let millis = Duration::from_millis;
        for (took, next) in [
            (0, 10),
            (1, 10),
            (20, 200),
            (200, 2_000),
            (1_000, 3_000),
            (22_000, 24_000),
        ] {
            assert_eq!(scan_interval(millis(took)), millis(next), "{took}");
        }
        assert_eq!(scan_interval(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn the_next_scan_is_when_something_is_due_and_soon_in_any_case() {
        let now = Timestamp::from_millis(1_000_000);
        let after = |millis: u64| pause(Some(now.after(Duration::from_millis(millis))), now);
        assert_eq!(
            [after(300), after(0), after(60_000)],
            [
                Duration::from_millis(300),
                Duration::from_millis(1),
                MAX_SCAN_INTERVAL
            ]
        );
        assert_eq!(
            pause(Some(now.before(Duration::from_secs(5))), now),
            Duration::from_millis(1)
        );
        assert_eq!(pause(None, now), MAX_SCAN_INTERVAL);
    }
}
