//! Environments between the wire and the use-cases.

use kanat_model::Error;
use kanat_proto::v1 as wire;
use kanat_store::environment::Environment;

use crate::app::environment::Update;
use crate::app::etag;
use crate::carry::carry;
use crate::grpc::clear;

pub fn environment(environment: Environment) -> wire::Environment {
    carry!(
        wire::Environment, environment { name, is_default, base_url }
        text { id, created_at, updated_at }
        with {
            etag: etag(&environment),
        }
    )
}

/// The id or name of the environment, and what changes.
pub fn update(mut request: wire::UpdateEnvironmentRequest) -> Result<(String, Update), Error> {
    clear::texts(&request.clear, [("base_url", &mut request.base_url)])?;
    let update = carry!(Update, request { name, base_url });
    Ok((request.id, update))
}
