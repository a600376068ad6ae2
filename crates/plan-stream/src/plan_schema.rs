//! Plan schemas: version numbers of the encoding of plans, by which neighbouring builds work
//! together. A resource that requires a newer schema than a build runs is withheld from it.

use kanat_proto::plan::v1::Head;
use prost::Message;

use crate::{MIN_PLAN_SCHEMA, PLAN_SCHEMA};

/// Range of the plan schemas that a build can run, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanSchemaRange {
    /// The oldest.
    pub min: u32,
    /// The newest.
    pub max: u32,
}

/// Plan schemas that this build can run.
pub const SUPPORTED: PlanSchemaRange = PlanSchemaRange {
    min: MIN_PLAN_SCHEMA,
    max: PLAN_SCHEMA,
};

impl PlanSchemaRange {
    /// Returns whether there is a plan schema that both builds can run.
    pub fn overlaps(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    /// Checks that a resource that requires this plan schema can run.
    ///
    /// # Errors
    /// The plan schema is outside of the range; the text is for an operator.
    pub fn check(self, required: u32) -> Result<(), String> {
        if (self.min..=self.max).contains(&required) {
            return Ok(());
        }
        Err(format!(
            "it requires plan schema {required}, and the build of the node runs {} to {}",
            self.min, self.max
        ))
    }
}

/// Returns the body of a resource, with the plan schema that it requires.
pub(crate) fn encode(resource: &impl Message, plan_schema: u32) -> Vec<u8> {
    let mut body = resource.encode_to_vec();
    if plan_schema > MIN_PLAN_SCHEMA {
        // Concatenated protobuf messages merge: the body gets the field of `Head` as well.
        body.extend(Head { plan_schema }.encode_to_vec());
    }
    body
}

/// Returns the plan schema that the resource of this body requires.
pub fn required_by(body: &[u8]) -> u32 {
    // A body that cannot be read is refused for that.
    Head::decode(body).map_or(MIN_PLAN_SCHEMA, |head| {
        head.plan_schema.max(MIN_PLAN_SCHEMA)
    })
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::FlowPlan;

    use super::*;

    #[test]
    fn a_body_of_a_newer_build_says_what_it_requires() {
        let mut body = FlowPlan {
            flow_id: "flw_1".to_owned(),
            version: 3,
            ..FlowPlan::default()
        }
        .encode_to_vec();
        assert_eq!(required_by(&body), 1);
        body.extend(Head { plan_schema: 2 }.encode_to_vec());
        assert_eq!(required_by(&body), 2);
        assert_eq!(
            FlowPlan::decode(body.as_slice()).unwrap().flow_id,
            "flw_1",
            "an older build can read the rest"
        );
        assert_eq!(required_by(b"\xff"), 1);
    }

    #[test]
    fn builds_work_together_when_their_plan_schemas_overlap() {
        let range = |min, max| PlanSchemaRange { min, max };
        assert!(range(1, 2).overlaps(range(2, 3)) && range(2, 3).overlaps(range(1, 2)));
        assert!(!range(1, 1).overlaps(range(2, 3)) && !range(2, 3).overlaps(range(1, 1)));
        assert_eq!(range(1, 2).check(2), Ok(()));
        assert!(
            range(1, 1)
                .check(2)
                .unwrap_err()
                .contains("requires plan schema 2")
        );
    }
}
