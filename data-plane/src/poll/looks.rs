//! When each flow that polls is to be looked at again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use crate::plans::DeployedFlow;

/// At any time but while it is looked at a flow waits for its next look.
#[derive(Default)]
pub(super) struct Looks {
    flows: HashMap<FlowId, Arc<DeployedFlow>>,
    /// Those that wait, by when each is due.
    waiting: BTreeSet<(Timestamp, FlowId)>,
    /// Those that are looked at, also when they are not deployed any more.
    under_way: HashSet<FlowId>,
}

/// What came of a look.
pub(super) struct Looked {
    pub flow_id: FlowId,
    /// The version that was looked at.
    pub version: u32,
    pub again_at: Timestamp,
}

impl Looks {
    /// These flows poll from now on, and no others. Those that are new, or of a newer version, are
    /// due.
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
            if !self.under_way.contains(&flow.id) {
                self.waiting.insert((at, flow.id.clone()));
            }
            self.flows.insert(flow.id.clone(), flow);
        }
    }

    /// The next flow that is due; it is looked at from now on.
    pub fn next_due(&mut self, now: Timestamp) -> Option<Arc<DeployedFlow>> {
        let (at, id) = self.waiting.pop_first()?;
        if at > now {
            self.waiting.insert((at, id));
            return None;
        }
        let flow = self.flows.get(&id).cloned();
        self.under_way.insert(id);
        flow
    }

    /// A look has ended. A version that came meanwhile is due.
    pub fn ended(&mut self, looked: Looked, now: Timestamp) {
        let Looked {
            flow_id,
            version,
            again_at,
        } = looked;
        self.under_way.remove(&flow_id);
        if let Some(flow) = self.flows.get(&flow_id) {
            let at = if flow.version > version {
                now
            } else {
                again_at
            };
            self.waiting.insert((at, flow_id));
        }
    }

    /// When the first of those that wait is due.
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

    /// The flows that are due, each with its version.
    fn due(looks: &mut Looks, now: Timestamp) -> Vec<(String, u32)> {
        std::iter::from_fn(|| looks.next_due(now))
            .map(|flow| (flow.id.to_string(), flow.version))
            .collect()
    }

    fn ended(looks: &mut Looks, id: &str, version: u32, again_at: Timestamp, now: Timestamp) {
        looks.ended(
            Looked {
                flow_id: FlowId::from(id),
                version,
                again_at,
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
    fn a_flow_is_looked_at_when_it_is_new_and_then_when_it_is_due() {
        let mut looks = Looks::default();
        assert_eq!(looks.first(), None);
        assert_eq!(due(&mut looks, at(0)), known(&[]));
        looks.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(1));
        assert_eq!(due(&mut looks, at(1)), known(&[("flw_a", 1), ("flw_b", 1)]));
        assert_eq!(looks.first(), None, "both are being looked at");
        assert_eq!(
            due(&mut looks, at(9)),
            known(&[]),
            "both are being looked at"
        );
        ended(&mut looks, "flw_a", 1, at(30), at(2));
        ended(&mut looks, "flw_b", 1, at(20), at(2));
        assert_eq!(looks.first(), Some(at(20)));
        assert_eq!(due(&mut looks, at(19)), known(&[]));
        assert_eq!(due(&mut looks, at(20)), known(&[("flw_b", 1)]));
        assert_eq!(looks.first(), Some(at(30)));

        // Another change leaves it as it is.
        looks.replace(
            [flow("flw_a", 1), flow("flw_b", 1), flow("flw_c", 4)].into_iter(),
            at(21),
        );
        assert_eq!(due(&mut looks, at(29)), known(&[("flw_c", 4)]));
        assert_eq!(due(&mut looks, at(30)), known(&[("flw_a", 1)]));
    }

    #[test]
    fn a_newer_version_is_due_when_the_look_at_the_former_has_ended() {
        let mut looks = Looks::default();
        looks.replace([flow("flw_a", 1)].into_iter(), at(0));
        assert_eq!(due(&mut looks, at(0)), known(&[("flw_a", 1)]));
        looks.replace([flow("flw_a", 2)].into_iter(), at(1));
        assert_eq!(due(&mut looks, at(1)), known(&[]));
        ended(&mut looks, "flw_a", 1, at(60), at(2));
        assert_eq!(due(&mut looks, at(2)), known(&[("flw_a", 2)]));
        ended(&mut looks, "flw_a", 2, at(60), at(3));
        looks.replace([flow("flw_a", 3)].into_iter(), at(4));
        assert_eq!(due(&mut looks, at(4)), known(&[("flw_a", 3)]));
    }

    #[test]
    fn a_flow_that_went_is_not_looked_at_and_one_that_came_back_not_twice_at_once() {
        let mut looks = Looks::default();
        looks.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(0));
        assert_eq!(looks.next_due(at(0)).unwrap().id.as_str(), "flw_a");
        looks.replace([].into_iter(), at(1));
        assert_eq!(looks.first(), None);
        assert_eq!(due(&mut looks, at(9)), known(&[]));
        looks.replace([flow("flw_a", 1), flow("flw_b", 1)].into_iter(), at(10));
        assert_eq!(due(&mut looks, at(10)), known(&[("flw_b", 1)]));
        ended(&mut looks, "flw_a", 1, at(12), at(11));
        assert_eq!(due(&mut looks, at(12)), known(&[("flw_a", 1)]));
        looks.replace([].into_iter(), at(13));
        ended(&mut looks, "flw_a", 1, at(14), at(14));
        ended(&mut looks, "flw_b", 1, at(14), at(14));
        assert_eq!(looks.first(), None);
        assert_eq!(due(&mut looks, at(99)), known(&[]));
    }
}
