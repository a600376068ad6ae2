//! Environments between the wire and the use-cases.

use kanat_model::Error;
use kanat_proto::v1 as wire;
use kanat_store::environment::Environment;

use crate::app::environment::Update;
use crate::app::etag;
use crate::grpc::clear;

pub fn environment(environment: Environment) -> wire::Environment {
    wire::Environment {
        id: environment.id.into_string(),
        name: environment.name,
        created_at: environment.created_at.to_string(),
        is_default: environment.is_default,
        base_url: environment.base_url,
        updated_at: environment.updated_at.to_string(),
        etag: etag(environment.revision),
    }
}

/// The id or name of the environment, and what changes.
pub fn update(request: wire::UpdateEnvironmentRequest) -> Result<(String, Update), Error> {
    let wire::UpdateEnvironmentRequest {
        id,
        name,
        base_url,
        clear,
    } = request;
    clear::check(&clear, &["base_url"])?;
    Ok((
        id,
        Update {
            name,
            base_url: clear::text(base_url, &clear, "base_url"),
        },
    ))
}
