//! Bodies of flows, with the plan schema that they take.

use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{FlowPlan, Head, Mapping, field};
use prost::Message;

/// The plan schema of flows that judge answers by `success_when`, which a build before it would all
/// take for successes, of mappings that leave items of a list out, and of polls that count pages.
const SCHEMA: u32 = 3;

/// Returns the body of a flow's plan, which says what it takes to run it.
pub fn encode(plan: &FlowPlan) -> Vec<u8> {
    let mut body = plan.encode_to_vec();
    if judges_answers(plan) || filters_items(plan.mapping.as_ref()) || counts_pages(plan) {
        let plan_schema = SCHEMA;
        body.extend(Head { plan_schema }.encode_to_vec());
    }
    body
}

fn judges_answers(plan: &FlowPlan) -> bool {
    let target = plan.target.iter().map(|target| &target.success_when);
    let steps = plan.steps.iter().map(|step| &step.success_when);
    target.chain(steps).any(|condition| !condition.is_empty())
}

fn filters_items(mapping: Option<&Mapping>) -> bool {
    let fields = mapping.iter().flat_map(|mapping| &mapping.fields);
    fields
        .filter_map(|field| match &field.value {
            Some(field::Value::Each(each)) => Some(each),
            Some(field::Value::Expression(_) | field::Value::Template(_)) | None => None,
        })
        .any(|each| !each.r#where.is_empty() || filters_items(each.map.as_ref()))
}

fn counts_pages(plan: &FlowPlan) -> bool {
    let kind = plan
        .trigger
        .as_ref()
        .and_then(|trigger| trigger.kind.as_ref());
    let pagination = match kind {
        Some(Kind::Poll(poll)) => poll.pagination.as_ref(),
        Some(Kind::Webhook(_) | Kind::Manual(_) | Kind::Schedule(_) | Kind::Api(_)) | None => None,
    };
    pagination.is_some_and(|pagination| pagination.strategy == "page")
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{Each, Field, Pagination, Poll, Step, Target, Trigger};

    use super::*;
    use crate::schema;

    #[test]
    fn a_flow_takes_the_schema_of_what_it_has() {
        let mut plan = FlowPlan {
            flow_id: "flw_1".to_owned(),
            target: Some(Target::default()),
            steps: vec![Step::default()],
            ..FlowPlan::default()
        };
        assert_eq!(schema::of(&encode(&plan)), 1);
        plan.steps[0].success_when = "response.body.ok".to_owned();
        assert_eq!(schema::of(&encode(&plan)), SCHEMA);
        assert_eq!(FlowPlan::decode(encode(&plan).as_slice()), Ok(plan));

        let polling = |strategy: &str| {
            let poll = Poll {
                pagination: Some(Pagination {
                    strategy: strategy.to_owned(),
                    ..Pagination::default()
                }),
                ..Poll::default()
            };
            let plan = FlowPlan {
                trigger: Some(Trigger {
                    kind: Some(Kind::Poll(poll)),
                }),
                ..FlowPlan::default()
            };
            schema::of(&encode(&plan))
        };
        let mapped = |condition: &str| {
            let each = Each {
                list: "source.lines".to_owned(),
                r#where: condition.to_owned(),
                map: None,
            };
            let field = Field {
                name: "lines".to_owned(),
                value: Some(field::Value::Each(each)),
            };
            let plan = FlowPlan {
                mapping: Some(Mapping {
                    fields: vec![field],
                }),
                ..FlowPlan::default()
            };
            schema::of(&encode(&plan))
        };
        assert_eq!(mapped(""), 1);
        assert_eq!(mapped("item.qty > 0"), SCHEMA);
        assert_eq!(polling("offset"), 1);
        assert_eq!(polling("page"), SCHEMA);
    }
}
