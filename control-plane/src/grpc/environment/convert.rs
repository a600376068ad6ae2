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
        wire::Environment, environment { name, is_default, base_url, retention_days }
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
            retention_days: clear::number(request.retention_days, &[], "retention_days"),
        }
    )
}

/// The id or name of the environment, and what changes.
pub fn update(request: wire::UpdateEnvironmentRequest) -> Result<(String, Fields), Error> {
    let clear = &request.clear;
    clear::check(clear, &["base_url", "retention_days"])?;
    let fields = carry!(
        Fields, request { name, promoters }
        with {
            base_url: clear::text(request.base_url, clear, "base_url"),
            retention_days: clear::number(request.retention_days, clear, "retention_days"),
            is_protected: request.protected,
            variables: request.variables.map(|json| json.text),
        }
    );
    Ok((request.id, fields))
}
