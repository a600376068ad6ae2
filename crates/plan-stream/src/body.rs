//! Bodies of flows and of published APIs, with the plan schemas that they require.

use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{
    FlowPlan, Mapping, PublishedApi, ResponseMapping, field, response_mapping,
};

use crate::{MIN_PLAN_SCHEMA, plan_schema};

/// The plan schema of flows that judge answers by `success_when`, of mappings that leave out items
/// of a list, and of polls that count pages. An older build would take every answer for a success.
const SUCCESS_WHEN_SCHEMA: u32 = 3;

/// The plan schema of flows and of published APIs that read variables of the environment. In an
/// older build these are undefined.
const VARIABLES_SCHEMA: u32 = 4;

/// Returns the body of a flow's plan, with the plan schema that it requires.
pub fn encode_flow(plan: &FlowPlan) -> Vec<u8> {
    let is_newer =
        judges_answers(plan) || filters_items(plan.mapping.as_ref()) || counts_pages(plan);
    plan_schema::encode(plan, schema_of(&plan.variables, is_newer))
}

/// Returns the body of a published API, with the plan schema that it requires.
pub fn encode_api(api: &PublishedApi) -> Vec<u8> {
    let versions = api.versions.iter();
    let responses = versions.filter_map(|version| version.response_mapping.as_ref());
    let filters = |response: &ResponseMapping| match &response.body {
        Some(response_mapping::Body::Mapping(mapping)) => filters_items(Some(mapping)),
        Some(response_mapping::Body::Expression(_) | response_mapping::Body::Template(_))
        | None => false,
    };
    let plan_schema = responses.map(|response| schema_of(&response.variables, filters(response)));
    plan_schema::encode(api, plan_schema.max().unwrap_or(MIN_PLAN_SCHEMA))
}

/// Returns the plan schema of a resource that reads these variables. `is_newer` is true if it has
/// what builds before [`SUCCESS_WHEN_SCHEMA`] ignore.
fn schema_of(variables: &[String], is_newer: bool) -> u32 {
    match (variables, is_newer) {
        ([_, ..], _) => VARIABLES_SCHEMA,
        ([], true) => SUCCESS_WHEN_SCHEMA,
        ([], false) => MIN_PLAN_SCHEMA,
    }
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
    use kanat_proto::plan::v1::{ApiVersion, Each, Field, Pagination, Poll, Step, Target, Trigger};
    use prost::Message;

    use super::*;

    fn mapping_with(condition: &str) -> Mapping {
        let each = Each {
            list: "source.lines".to_owned(),
            r#where: condition.to_owned(),
            map: None,
        };
        let field = Field {
            name: "lines".to_owned(),
            value: Some(field::Value::Each(each)),
        };
        Mapping {
            fields: vec![field],
        }
    }

    #[test]
    fn a_published_api_requires_the_schema_of_its_response_mappings() {
        let answering = |condition: &str| {
            let response_mapping = ResponseMapping {
                body: Some(response_mapping::Body::Mapping(mapping_with(condition))),
                ..ResponseMapping::default()
            };
            let answering = ApiVersion {
                response_mapping: Some(response_mapping),
                ..ApiVersion::default()
            };
            PublishedApi {
                versions: vec![ApiVersion::default(), answering],
                ..PublishedApi::default()
            }
        };
        assert_eq!(plan_schema::required_by(&encode_api(&answering(""))), 1);
        let filtering = answering("item.qty > 0");
        let body = encode_api(&filtering);
        assert_eq!(plan_schema::required_by(&body), SUCCESS_WHEN_SCHEMA);
        assert_eq!(PublishedApi::decode(body.as_slice()), Ok(filtering.clone()));

        let mut reading = filtering;
        let response = reading.versions[1].response_mapping.as_mut().unwrap();
        response.variables = vec!["REGION".to_owned()];
        assert_eq!(
            plan_schema::required_by(&encode_api(&reading)),
            VARIABLES_SCHEMA
        );
    }

    #[test]
    fn a_flow_requires_the_schema_of_what_it_has() {
        let mut plan = FlowPlan {
            flow_id: "flw_1".to_owned(),
            target: Some(Target::default()),
            steps: vec![Step::default()],
            ..FlowPlan::default()
        };
        assert_eq!(plan_schema::required_by(&encode_flow(&plan)), 1);
        plan.steps[0].success_when = "response.body.ok".to_owned();
        assert_eq!(
            plan_schema::required_by(&encode_flow(&plan)),
            SUCCESS_WHEN_SCHEMA
        );
        assert_eq!(
            FlowPlan::decode(encode_flow(&plan).as_slice()),
            Ok(plan.clone())
        );

        let reading = FlowPlan {
            variables: vec!["REGION".to_owned()],
            ..plan.clone()
        };
        assert_eq!(
            plan_schema::required_by(&encode_flow(&reading)),
            VARIABLES_SCHEMA
        );

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
            plan_schema::required_by(&encode_flow(&plan))
        };
        let mapped = |condition: &str| {
            let plan = FlowPlan {
                mapping: Some(mapping_with(condition)),
                ..FlowPlan::default()
            };
            plan_schema::required_by(&encode_flow(&plan))
        };
        assert_eq!(mapped(""), 1);
        assert_eq!(mapped("item.qty > 0"), SUCCESS_WHEN_SCHEMA);
        assert_eq!(polling("offset"), 1);
        assert_eq!(polling("page"), SUCCESS_WHEN_SCHEMA);
    }
}
