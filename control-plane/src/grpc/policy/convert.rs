//! Governance policies between the wire and the use-cases.

use kanat_model::Error;
use kanat_model::id::{EnvironmentId, PolicyId};
use kanat_proto::v1 as wire;
use kanat_store::policy::Policy;

use crate::app::etag;
use crate::app::policy::Fields;
use crate::grpc::clear;

pub fn policy(policy: Policy) -> wire::Policy {
    wire::Policy {
        etag: etag(policy.revision),
        id: policy.id.into_string(),
        name: policy.name,
        description: policy.description,
        severity: policy.severity.as_str().to_owned(),
        expression: policy.expression,
        message: policy.message,
        environment_ids: policy
            .environment_ids
            .into_iter()
            .map(EnvironmentId::into_string)
            .collect(),
        enabled: policy.enabled,
        builtin: false,
        created_at: policy.created_at.to_string(),
        updated_at: policy.updated_at.to_string(),
    }
}

pub fn new(request: wire::CreatePolicyRequest) -> Fields {
    Fields {
        name: Some(request.name),
        description: request.description,
        severity: request.severity,
        expression: Some(request.expression),
        message: request.message,
        environment_ids: Some(ids(request.environment_ids)),
        enabled: request.enabled,
    }
}

pub fn update(request: wire::UpdatePolicyRequest) -> Result<(PolicyId, Fields), Error> {
    let clear = request.clear;
    clear::check(&clear, &["description", "message"])?;
    let environment_ids = match request.environment_ids {
        Some(json) => {
            let list = serde_json::from_str(&json.text);
            Some(ids(list.map_err(|_| {
                Error::field("environmentIds", "is no list of texts")
            })?))
        }
        None => None,
    };
    let fields = Fields {
        name: request.name,
        description: clear::text(request.description, &clear, "description"),
        severity: request.severity,
        expression: request.expression,
        message: clear::text(request.message, &clear, "message"),
        environment_ids,
        enabled: request.enabled,
    };
    Ok((request.id.into(), fields))
}

fn ids(texts: Vec<String>) -> Vec<EnvironmentId> {
    texts.into_iter().map(EnvironmentId::from).collect()
}
