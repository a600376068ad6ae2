//! Schedule of the polls of a node.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use crate::plans::DeployedFlow;

/// A flow is either in progress or waits for its next poll.
#[derive(Default)]
pub(super) struct PollSchedule {
    flows: HashMap<FlowId, Arc<DeployedFlow>>,
    /// Flows that wait, by the time of their next poll.
    waiting: BTreeSet<(Timestamp, FlowId)>,
    /// Flows whose poll runs, also when they are no longer deployed.
    in_progress: HashSet<FlowId>,
}

/// Result of a poll, or of an attempt to poll.
pub(super) struct PollResult {
    pub flow_id: FlowId,
    /// Version that was polled.
    pub version: u32,
    pub next_at: Timestamp,
}

impl PollSchedule {
    /// Replaces the flows that poll. Flows that are new, or of a newer version, are due.
    pub fn replace(&mut self, deployed: impl Iterator<Item = Arc<DeployedFlow>>, now: Timestamp) {
        let former = std::mem::take(&mut self.flows);
        let due: HashMap<_, _> = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(at, id)| (id, at))
            .collect();
        for flow in deployed {
            let known = former
                .get(&flow.id)
                .is_some_and(|former| former.version >= flow.version);
            let at = due.get(&flow.id).filter(|_| known).copied().unwrap_or(now);
            if !self.in_progress.contains(&flow.id) {
                self.waiting.insert((at, flow.id.clone()));
            }
            self.flows.insert(flow.id.clone(), flow);
        }
    }

    /// Returns the next flow that is due, and marks it as in progress.
    pub fn next_due(&mut self, now: Timestamp) -> Option<Arc<DeployedFlow>> {
        let (at, id) = self.waiting.pop_first()?;
        if at > now {
            self.waiting.insert((at, id));
            return None;
        }
        let flow = self.flows.get(&id).cloned();
        self.in_progress.insert(id);
        flow
    }

    /// Records that a poll has ended. A version that was deployed meanwhile is due.
    pub fn complete(&mut self, result: PollResult, now: Timestamp) {
        let PollResult {
            flow_id,
            version,
            next_at,
        } = result;
        self.in_progress.remove(&flow_id);
        if let Some(flow) = self.flows.get(&flow_id) {
            let at = if flow.version > version { now } else { next_at };
            self.waiting.insert((at, flow_id));
        }
    }

    /// Returns the time of the next poll.
    pub fn first(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::FlowPlan;
    use prost::Message;

    use super::*;

    fn flow(id: &str, version: u32) -> Arc<DeployedFlow> {
        let plan = FlowPlan {
            flow_id: id.to_owned(),
            version,
            ..FlowPlan::default()
        };
        let body = plan.encode_to_vec().into();
        Arc::new(DeployedFlow::new(plan, body).unwrap())
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1_000)
    }

    /// Returns the flows that are due, each with its version.
    fn due(schedule: &mut PollSchedule, now: Timestamp) -> Vec<(String, u32)> {
        std::iter::from_fn(|| schedule.next_due(now))
            .map(|flow| (flow.id.to_string(), flow.version))
            .collect()
    }

    fn complete(
        schedule: &mut PollSchedule,
        id: &str,
        version: u32,
        next_at: Timestamp,
        now: Timestamp,
    ) {
        schedule.complete(
            PollResult {
                flow_id: FlowId::from(id),
                version,
                next_at,
            },
            now,
        );
    }

    fn known(flows: &[(&str, u32)]) -> Vec<(String, u32)> {
        flows
            .iter()
            .map(|(id, version)| ((*id).to_owned(), *version))
            .collect()
    }

    #[test]
    fn a_flow_is_polled_when_it_is_new_and_then_when_it_is_due() {
        let mut schedule = PollSchedule::default();
        assert_eq!(schedule.first(), None);
        assert_eq!(due(&mut schedule, at(0)), known(&[]));
        schedule.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(1));
        assert_eq!(
            due(&mut schedule, at(1)),
            known(&[("flw_a", 1), ("flw_b", 1)])
        );
        assert_eq!(schedule.first(), None, "both polls are in progress");
        assert_eq!(
            due(&mut schedule, at(9)),
            known(&[]),
            "both polls are in progress"
        );
        complete(&mut schedule, "flw_a", 1, at(30), at(2));
        complete(&mut schedule, "flw_b", 1, at(20), at(2));
        assert_eq!(schedule.first(), Some(at(20)));
        assert_eq!(due(&mut schedule, at(19)), known(&[]));
        assert_eq!(due(&mut schedule, at(20)), known(&[("flw_b", 1)]));
        assert_eq!(schedule.first(), Some(at(30)));

        // Another change leaves it as it is.
        schedule.replace(
            [flow("flw_a", 1), flow("flw_b", 1), flow("flw_c", 4)].into_iter(),
            at(21),
        );
        assert_eq!(due(&mut schedule, at(29)), known(&[("flw_c", 4)]));
        assert_eq!(due(&mut schedule, at(30)), known(&[("flw_a", 1)]));
    }

    #[test]
    fn a_newer_version_is_due_when_the_poll_of_the_former_has_ended() {
        let mut schedule = PollSchedule::default();
        schedule.replace([flow("flw_a", 1)].into_iter(), at(0));
        assert_eq!(due(&mut schedule, at(0)), known(&[("flw_a", 1)]));
        schedule.replace([flow("flw_a", 2)].into_iter(), at(1));
        assert_eq!(due(&mut schedule, at(1)), known(&[]));
        complete(&mut schedule, "flw_a", 1, at(60), at(2));
        assert_eq!(due(&mut schedule, at(2)), known(&[("flw_a", 2)]));
        complete(&mut schedule, "flw_a", 2, at(60), at(3));
        schedule.replace([flow("flw_a", 3)].into_iter(), at(4));
        assert_eq!(due(&mut schedule, at(4)), known(&[("flw_a", 3)]));
    }

    #[test]
    fn a_removed_flow_is_not_polled_and_one_that_came_back_not_twice_at_once() {
        let mut schedule = PollSchedule::default();
        schedule.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(0));
        assert_eq!(schedule.next_due(at(0)).unwrap().id.as_str(), "flw_a");
        schedule.replace([].into_iter(), at(1));
        assert_eq!(schedule.first(), None);
        assert_eq!(due(&mut schedule, at(9)), known(&[]));
        schedule.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(10));
        assert_eq!(due(&mut schedule, at(10)), known(&[("flw_b", 1)]));
        complete(&mut schedule, "flw_a", 1, at(12), at(11));
        assert_eq!(due(&mut schedule, at(12)), known(&[("flw_a", 1)]));
        schedule.replace([].into_iter(), at(13));
        complete(&mut schedule, "flw_a", 1, at(14), at(14));
        complete(&mut schedule, "flw_b", 1, at(14), at(14));
        assert_eq!(schedule.first(), None);
        assert_eq!(due(&mut schedule, at(99)), known(&[]));
    }
}
