//! Environments between the wire and the use-cases.

use kanat_model::Error;
use kanat_proto::v1 as wire;
use kanat_store::environment::Environment;

use crate::app::environment::Fields;
use crate::app::etag;
use crate::carry::carry;
use crate::grpc::clear;

pub fn environment(environment: Environment) -> wire::Environment {
    carry!(
        wire::Environment, environment { name, is_default, base_url }
        text { id, created_at, updated_at }
        word { promoters }
        with {
            etag: etag(&environment),
            protected: environment.is_protected,
            variables: environment.variables.into_iter().collect(),
        }
    )
}

pub fn new(request: wire::CreateEnvironmentRequest) -> Fields {
    carry!(
        Fields, request { base_url, promoters }
        with {
            name: Some(request.name),
            is_protected: request.protected,
            variables: request.variables.map(|json| json.text),
        }
    )
}

/// The id or name of the environment, and what changes.
pub fn update(mut request: wire::UpdateEnvironmentRequest) -> Result<(String, Fields), Error> {
    clear::texts(&request.clear, [("base_url", &mut request.base_url)])?;
    let fields = carry!(
        Fields, request { name, base_url, promoters }
        with {
            is_protected: request.protected,
            variables: request.variables.map(|json| json.text),
        }
    );
    Ok((request.id, fields))
}
