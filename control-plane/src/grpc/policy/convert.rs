//! Governance policies between the wire and the use-cases.

use kanat_model::Error;
use kanat_model::id::{EnvironmentId, PolicyId};
use kanat_proto::v1 as wire;
use kanat_store::policy::Policy;

use crate::app::etag;
use crate::app::policy::Fields;
use crate::carry::carry;
use crate::grpc::clear;

pub fn policy(policy: Policy) -> wire::Policy {
    carry!(
        wire::Policy, policy { name, description, expression, message, enabled }
        text { id, created_at, updated_at }
        word { severity }
        with {
            etag: etag(&policy),
            environment_ids: policy
                .environment_ids
                .into_iter()
                .map(EnvironmentId::into_string)
                .collect(),
            builtin: false,
        }
    )
}

pub fn new(request: wire::CreatePolicyRequest) -> Fields {
    carry!(
        Fields, request { description, severity, message, enabled }
        with {
            name: Some(request.name),
            expression: Some(request.expression),
            environment_ids: Some(ids(request.environment_ids)),
        }
    )
}

pub fn update(mut request: wire::UpdatePolicyRequest) -> Result<(PolicyId, Fields), Error> {
    let texts = [
        ("description", &mut request.description),
        ("message", &mut request.message),
    ];
    clear::texts(&request.clear, texts)?;
    let environment_ids = match request.environment_ids {
        Some(json) => {
            let list = serde_json::from_str(&json.text);
            Some(ids(list.map_err(|_| {
                Error::field("environmentIds", "is no list of texts")
            })?))
        }
        None => None,
    };
    let fields = carry!(
        Fields, request { name, description, severity, expression, message, enabled }
        with {
            environment_ids,
        }
    );
    Ok((request.id.into(), fields))
}

fn ids(texts: Vec<String>) -> Vec<EnvironmentId> {
    texts.into_iter().map(EnvironmentId::from).collect()
}
